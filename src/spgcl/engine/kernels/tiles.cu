// Functions of a tile of products in float16: exponentials, their sums and their weighted values; the logistic
// function and the sum of its integral (softplus).
//
// A tile is row-major with rows of `stride` numbers, a multiple of eight, of which the first `cols` count. Rows and
// columns of a tile on the diagonal of the whole matrix are the same: exponentials on its own diagonal are left out.
// Every sum is computed in a fixed order: the same input gives the same bytes.

#define EACH 8
#define THREADS 256
#define WARPS (THREADS / 32)
#define ROWS 64
#define LOGISTIC_SCALE 16384.f

// Eight float16 numbers, unpacked.
struct Eight {
  float of[EACH];
};

__device__ __forceinline__ Eight unpacked(uint4 read) {
  unsigned pairs[4] = {read.x, read.y, read.z, read.w};
  Eight out;
#pragma unroll
  for (int pair = 0; pair < 4; pair++)
    asm("{.reg .f16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high;}"
        : "=f"(out.of[2 * pair]), "=f"(out.of[2 * pair + 1])
        : "r"(pairs[pair]));
  return out;
}

__device__ __forceinline__ uint4 packed(const Eight& numbers) {
  unsigned pairs[4];
#pragma unroll
  for (int pair = 0; pair < 4; pair++)
    asm("{.reg .f16 low, high; cvt.rn.f16.f32 low, %1; cvt.rn.f16.f32 high, %2; mov.b32 %0, {low, high};}"
        : "=r"(pairs[pair])
        : "f"(numbers.of[2 * pair]), "f"(numbers.of[2 * pair + 1]));
  return make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

// Exponentials of eight entries of a row from `column` on; 0 for those that do not count.
__device__ __forceinline__ Eight exponentials(const uint4* tile, long long at, int row, int column, int cols,
                                              int diagonal) {
  Eight numbers = unpacked(tile[at]);
#pragma unroll
  for (int each = 0; each < EACH; each++) {
    bool counts = column + each < cols && !(diagonal && column + each == row);
    numbers.of[each] = counts ? __expf(numbers.of[each]) : 0.f;
  }
  return numbers;
}

// Sums of the rows and of the columns of a block, which has ROWS rows and EACH * THREADS columns. Sums of rows go to
// row blockIdx.x of `row_parts`, sums of columns to row blockIdx.y of `column_parts`.
extern "C" __global__ void exponential_sums(const uint4* tile, float* row_parts, float* column_parts, int rows,
                                            int cols, int stride, int diagonal) {
  __shared__ float parts[WARPS][ROWS];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = blockIdx.y * ROWS;
  int column = EACH * (blockIdx.x * THREADS + threadIdx.x);
  Eight sums = {};
  for (int local = 0; local < ROWS; local++) {
    int row = first + local;
    float own = 0.f;
    if (row < rows && column < stride) {
      long long at = ((long long)row * stride + column) / EACH;
      Eight numbers = exponentials(tile, at, row, column, cols, diagonal);
#pragma unroll
      for (int each = 0; each < EACH; each++) {
        own += numbers.of[each];
        sums.of[each] += numbers.of[each];
      }
    }
    for (int step = 16; step > 0; step >>= 1) own += __shfl_xor_sync(0xffffffffu, own, step);
    if (lane == 0) parts[warp][local] = own;
  }
  __syncthreads();
  int local = threadIdx.x;
  if (local < ROWS && first + local < rows) {
    float total = 0.f;
    for (int each = 0; each < WARPS; each++) total += parts[each][local];
    row_parts[(long long)blockIdx.x * rows + first + local] = total;
  }
#pragma unroll
  for (int each = 0; each < EACH; each++)
    if (column + each < cols) column_parts[(long long)blockIdx.y * cols + column + each] = sums.of[each];
}

// Replaces every product by its exponential, times the sum of a weight of its row and one of its column.
extern "C" __global__ void exponential_shares(uint4* tile, const float* row_weights, const float* column_weights,
                                              int rows, int cols, int stride, int diagonal) {
  int first = blockIdx.y * ROWS, column = EACH * (blockIdx.x * THREADS + threadIdx.x);
  if (column >= stride) return;
  Eight weights;
#pragma unroll
  for (int each = 0; each < EACH; each++)
    weights.of[each] = column + each < cols ? column_weights[column + each] : 0.f;
  for (int row = first; row < min(rows, first + ROWS); row++) {
    long long at = ((long long)row * stride + column) / EACH;
    Eight numbers = exponentials(tile, at, row, column, cols, diagonal);
    float weight = row_weights[row];
#pragma unroll
    for (int each = 0; each < EACH; each++) numbers.of[each] *= weight + weights.of[each];
    tile[at] = packed(numbers);
  }
}

// Replaces every product, a multiple of `unit`, by its logistic function times LOGISTIC_SCALE, and columns that do not
// count by 0. The sum of softplus over each block goes to `parts`.
extern "C" __global__ void logistic(uint4* tile, const float* unit, float* parts, int rows, int cols, int stride) {
  __shared__ float sums[WARPS];
  int first = blockIdx.y * ROWS, column = EACH * (blockIdx.x * THREADS + threadIdx.x);
  int end = column < stride ? min(rows, first + ROWS) : first;
  float own = 0.f, scale = *unit;
  for (int row = first; row < end; row++) {
    long long at = ((long long)row * stride + column) / EACH;
    Eight numbers = unpacked(tile[at]);
#pragma unroll
    for (int each = 0; each < EACH; each++) {
      bool counts = column + each < cols;
      float product = scale * numbers.of[each], decay = __expf(-fabsf(product));
      float larger = __fdividef(LOGISTIC_SCALE, 1.f + decay);
      own += counts ? fmaxf(product, 0.f) + log1pf(decay) : 0.f;
      numbers.of[each] = counts ? (product < 0.f ? decay * larger : larger) : 0.f;
    }
    tile[at] = packed(numbers);
  }
  for (int step = 16; step > 0; step >>= 1) own += __shfl_xor_sync(0xffffffffu, own, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = own;
  __syncthreads();
  if (threadIdx.x == 0) {
    float total = 0.f;
    for (int each = 0; each < WARPS; each++) total += sums[each];
    parts[blockIdx.y * gridDim.x + blockIdx.x] = total;
  }
}
