// The expensive parts of a training step, as kernels that read only the rows a step needs.
//
// Matrices are row-major float32. A row that is not needed (node -1, or mask 0) is written as zeros, so that
// dense products over all rows may follow. Every sum is computed in a fixed order: the same input gives the
// same bytes.

#define NARROW 128
#define WIDE 512
#define WARPS 16
#define LANES 8
#define ROWS_FINISHED 32
#define LARGEST 1024.f
#define LEAST 1e-34f
#define TOPS 256
#define BELOW_ALL __int_as_float(0xff800000)

// Dynamic shared memory of a block.
extern __shared__ float4 memory[];

// ---- sparse products: sums of weighted rows ----------------------------------------------------------------

// Entries that a warp adds up next: its lanes read one each and drop those whose column is skipped (row -1).
struct Batch {
  int row[32];
  float value[32];
};

__device__ __forceinline__ int gather(Batch* batch, int from, int end, int span,
                                      const int* __restrict__ columns, const float* __restrict__ values,
                                      const int* __restrict__ dense_rows) {
  int lane = threadIdx.x, entry = from + lane, row = -1;
  if (lane < span && entry < end) row = dense_rows[columns[entry]];
  unsigned found = __ballot_sync(0xffffffffu, row >= 0);
  __syncwarp();
  if (row >= 0) {
    int at = __popc(found & ((1u << lane) - 1u));
    batch->row[at] = row;
    batch->value[at] = values[entry];
  }
  __syncwarp();
  return __popc(found);
}

// Adds up value * dense[dense_rows[column]] over a range of entries, without those of skipped columns. The warps
// of a block share the entries, some at a time (span); each lane keeps four columns.
__device__ __forceinline__ void narrow_sum(int first, int end, int span, const int* columns, const float* values,
                                           const float* __restrict__ dense, const int* dense_rows, float* out,
                                           int width) {
  __shared__ Batch batches[WARPS];
  float* parts = (float*)memory;
  int lane = threadIdx.x, warp = threadIdx.y, warps = blockDim.y, base = blockIdx.y * NARROW + lane;
  float sums[4] = {0.f, 0.f, 0.f, 0.f};
  for (int from = first + warp * span; from < end; from += warps * span) {
    int count = gather(&batches[warp], from, end, span, columns, values, dense_rows);
#pragma unroll 2
    for (int each = 0; each < count; each++) {
      float value = batches[warp].value[each];
      const float* row = dense + (long long)batches[warp].row[each] * width;
#pragma unroll
      for (int part = 0; part < 4; part++)
        if (base + 32 * part < width) sums[part] += value * row[base + 32 * part];
    }
  }
#pragma unroll
  for (int part = 0; part < 4; part++) parts[warp * NARROW + lane + 32 * part] = sums[part];
  __syncthreads();
  for (int at = warp * 32 + lane; at < NARROW; at += 32 * warps) {
    float total = 0.f;
    for (int each = 0; each < warps; each++) total += parts[each * NARROW + at];
    if (blockIdx.y * NARROW + at < width) out[blockIdx.y * NARROW + at] = total;
  }
}

// Adds up what the warps of a block hold in shared memory, four columns per thread, times a factor.
__device__ __forceinline__ void join_warps(float* out, int quarters, float factor) {
  int warps = blockDim.y;
  __syncthreads();
  for (int at = threadIdx.y * 32 + threadIdx.x; at < WIDE / 4; at += 32 * warps) {
    float4 total = memory[at];
    for (int each = 1; each < warps; each++) {
      float4 more = memory[each * (WIDE / 4) + at];
      total.x += more.x;
      total.y += more.y;
      total.z += more.z;
      total.w += more.w;
    }
    total = make_float4(total.x * factor, total.y * factor, total.z * factor, total.w * factor);
    if (blockIdx.y * (WIDE / 4) + at < quarters) ((float4*)out)[blockIdx.y * (WIDE / 4) + at] = total;
  }
}

// The same for widths that are multiples of four, sixteen columns per lane.
__device__ __forceinline__ void wide_sum(int first, int end, int span, const int* columns, const float* values,
                                         const float* __restrict__ dense, const int* dense_rows, float* out,
                                         int width) {
  __shared__ Batch batches[WARPS];
  int lane = threadIdx.x, warp = threadIdx.y, warps = blockDim.y;
  int base = blockIdx.y * (WIDE / 4) + lane, quarters = width / 4;
  float4 sums[4];
#pragma unroll
  for (int part = 0; part < 4; part++) sums[part] = make_float4(0.f, 0.f, 0.f, 0.f);
  for (int from = first + warp * span; from < end; from += warps * span) {
    int count = gather(&batches[warp], from, end, span, columns, values, dense_rows);
#pragma unroll 2
    for (int each = 0; each < count; each++) {
      float value = batches[warp].value[each];
      const float4* row = (const float4*)dense + (long long)batches[warp].row[each] * quarters;
#pragma unroll
      for (int part = 0; part < 4; part++)
        if (base + 32 * part < quarters) {
          float4 read = row[base + 32 * part];
          sums[part].x += value * read.x;
          sums[part].y += value * read.y;
          sums[part].z += value * read.z;
          sums[part].w += value * read.w;
        }
    }
  }
#pragma unroll
  for (int part = 0; part < 4; part++) memory[warp * (WIDE / 4) + lane + 32 * part] = sums[part];
  join_warps(out, quarters, 1.f);
}

// Two float16 numbers.
__device__ __forceinline__ float2 unpacked(unsigned pair) {
  float2 two;
  asm("{.reg .f16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high;}"
      : "=f"(two.x), "=f"(two.y)
      : "r"(pair));
  return two;
}

__device__ __forceinline__ unsigned packed(float low, float high) {
  unsigned pair;
  asm("{.reg .f16 low, high; cvt.rn.f16.f32 low, %1; cvt.rn.f16.f32 high, %2; mov.b32 %0, {low, high};}"
      : "=r"(pair)
      : "f"(low), "f"(high));
  return pair;
}

// The largest number of the threads of a block, for blocks of TOPS threads.
__device__ __forceinline__ float largest_of_block(float own) {
  __shared__ float tops[TOPS / 32];
  for (int step = 16; step > 0; step >>= 1) own = fmaxf(own, __shfl_xor_sync(0xffffffffu, own, step));
  if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = own;
  __syncthreads();
  float top = tops[0];
  for (int warp = 1; warp < TOPS / 32; warp++) top = fmaxf(top, tops[warp]);
  return top;
}

// The largest magnitude among the numbers that a block reads, for TOPS blocks.
extern "C" __global__ void largest_magnitude(const float4* dense, float* tops, int quarters) {
  float top = 0.f;
  for (int at = blockIdx.x * TOPS + threadIdx.x; at < quarters; at += TOPS * TOPS) {
    float4 read = dense[at];
    top = fmaxf(top, fmaxf(fmaxf(fabsf(read.x), fabsf(read.y)), fmaxf(fabsf(read.z), fabsf(read.w))));
  }
  top = largest_of_block(top);
  if (threadIdx.x == 0) tops[blockIdx.x] = top;
}

// Numbers in float16, scaled so that the largest becomes LARGEST. `tops` is the result of `largest_magnitude`.
extern "C" __global__ void to_float16(const float4* dense, const float* tops, float* largest, uint2* out,
                                      int quarters) {
  float top = largest_of_block(tops[threadIdx.x]);
  // A smaller one has no finite scale, which would turn zeros into NaN.
  if (top > 0.f) top = fmaxf(top, LEAST);
  int at = blockIdx.x * TOPS + threadIdx.x;
  if (at == 0) largest[0] = top;
  if (at >= quarters) return;
  float scale = top == 0.f ? 0.f : LARGEST / top;
  float4 read = dense[at];
  out[at] = make_uint2(packed(read.x * scale, read.y * scale), packed(read.z * scale, read.w * scale));
}

// Like wide_sum, of float16 numbers, for widths that are multiples of eight.
__device__ __forceinline__ void float16_sum(int first, int end, int span, const int* columns,
                                            const float* values, const uint4* __restrict__ dense,
                                            const float* largest, const int* dense_rows, float* out, int width) {
  __shared__ Batch batches[WARPS];
  int lane = threadIdx.x, warp = threadIdx.y, warps = blockDim.y;
  int base = blockIdx.y * (WIDE / 8) + lane, eighths = width / 8;
  float sums[2][8] = {};
  for (int from = first + warp * span; from < end; from += warps * span) {
    int count = gather(&batches[warp], from, end, span, columns, values, dense_rows);
#pragma unroll 4
    for (int each = 0; each < count; each++) {
      float value = batches[warp].value[each];
      const uint4* row = dense + (long long)batches[warp].row[each] * eighths;
#pragma unroll
      for (int part = 0; part < 2; part++)
        if (base + 32 * part < eighths) {
          uint4 read = row[base + 32 * part];
          unsigned pairs[4] = {read.x, read.y, read.z, read.w};
#pragma unroll
          for (int pair = 0; pair < 4; pair++) {
            float2 two = unpacked(pairs[pair]);
            sums[part][2 * pair] += value * two.x;
            sums[part][2 * pair + 1] += value * two.y;
          }
        }
    }
  }
#pragma unroll
  for (int part = 0; part < 2; part++) {
    float4* to = memory + warp * (WIDE / 4) + 2 * (lane + 32 * part);
    to[0] = make_float4(sums[part][0], sums[part][1], sums[part][2], sums[part][3]);
    to[1] = make_float4(sums[part][4], sums[part][5], sums[part][6], sums[part][7]);
  }
  join_warps(out, width / 4, largest[0] / LARGEST);
}

// out[i] = row chosen[i] of a sparse matrix times dense. One block per row and tile of columns.
#define ROWS(name, sum)                                                                                        \
  extern "C" __global__ void name(const int* rows, const int* columns, const float* values,                    \
                                  const float* dense, float* out, const int* chosen, const int* dense_rows,    \
                                  int width, int span) {                                                       \
    int row = chosen[blockIdx.x];                                                                              \
    int first = row < 0 ? 0 : rows[row], end = row < 0 ? 0 : rows[row + 1];                                    \
    sum(first, end, span, columns, values, dense, dense_rows, out + (long long)blockIdx.x * width, width);     \
  }
ROWS(narrow_rows, narrow_sum)
ROWS(wide_rows, wide_sum)

// All rows of a sparse matrix, long ones cut into pieces: a piece is (row, first, end, slot). A row of one piece
// (slot -1) is written at once, pieces of others to spare[slot], to be joined afterwards. Rows whose `chosen` is -1
// become zeros.
#define PIECES(name, sum)                                                                                      \
  extern "C" __global__ void name(const int* pieces, const int* columns, const float* values,                  \
                                  const float* dense, float* out, float* spare, const int* chosen,             \
                                  const int* dense_rows, int width, int span) {                                \
    const int* piece = pieces + 4 * blockIdx.x;                                                                \
    int row = piece[0], slot = piece[3];                                                                       \
    int first = chosen[row] < 0 ? 0 : piece[1], end = chosen[row] < 0 ? 0 : piece[2];                          \
    float* to = slot < 0 ? out + (long long)row * width : spare + (long long)slot * width;                     \
    sum(first, end, span, columns, values, dense, dense_rows, to, width);                                      \
  }
PIECES(narrow_pieces, narrow_sum)
PIECES(wide_pieces, wide_sum)

extern "C" __global__ void float16_pieces(const int* pieces, const int* columns, const float* values,
                                          const uint4* dense, const float* largest, float* out, float* spare,
                                          const int* chosen, const int* dense_rows, int width, int span) {
  const int* piece = pieces + 4 * blockIdx.x;
  int row = piece[0], slot = piece[3];
  int first = chosen[row] < 0 ? 0 : piece[1], end = chosen[row] < 0 ? 0 : piece[2];
  float* to = slot < 0 ? out + (long long)row * width : spare + (long long)slot * width;
  float16_sum(first, end, span, columns, values, dense, largest, dense_rows, to, width);
}

// Adds up the pieces of long rows: a join is (row, first slot, end slot). One thread per column.
extern "C" __global__ void join_pieces(const int* joins, const float* spare, float* out, int width) {
  const int* each = joins + 3 * blockIdx.x;
  int column = blockIdx.y * blockDim.x + threadIdx.x;
  if (column >= width) return;
  float total = 0.f;
  for (int slot = each[1]; slot < each[2]; slot++) total += spare[(long long)slot * width + column];
  out[(long long)each[0] * width + column] = total;
}

// ---- neighbourhoods -----------------------------------------------------------------------------------------

// needed[column] = 1 for every entry of the rows whose number is not -1. One warp per piece.
extern "C" __global__ void mark_columns(const int* pieces, const int* columns, const int* row_numbers,
                                        unsigned char* needed, int count) {
  int number = blockIdx.x * blockDim.y + threadIdx.y;
  if (number >= count) return;
  const int* piece = pieces + 4 * number;
  if (row_numbers[piece[0]] < 0) return;
  for (int entry = piece[1] + threadIdx.x; entry < piece[2]; entry += 32) needed[columns[entry]] = 1;
}

// nodes[i] = i if node i is marked, else -1; and how many are marked. `size` is zero before.
extern "C" __global__ void list_marked(const unsigned char* mask, int* nodes, unsigned long long* size,
                                       int count) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  bool marked = at < count && mask[at];
  if (at < count) nodes[at] = marked ? at : -1;
  int found = __syncthreads_count(marked);
  if (threadIdx.x == 0 && found) atomicAdd(size, (unsigned long long)found);
}

// One hop for many seeds at once, one bit per seed: after[row] is the union of before[column] over the entries of
// the row. One warp per piece. Bits may be set in any order.
extern "C" __global__ void expand_hop(const int* pieces, const int* columns, const unsigned* before,
                                      unsigned* after, int count, int words) {
  int number = blockIdx.x * blockDim.y + threadIdx.y;
  if (number >= count) return;
  const int* piece = pieces + 4 * number;
  for (int from = 0; from < words; from += 8) {
    unsigned bits[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (int entry = piece[1] + threadIdx.x; entry < piece[2]; entry += 32) {
      const unsigned* read = before + (long long)columns[entry] * words + from;
#pragma unroll
      for (int word = 0; word < 8; word++)
        if (from + word < words) bits[word] |= read[word];
    }
#pragma unroll
    for (int word = 0; word < 8; word++) {
      if (from + word >= words) break;
      for (int step = 16; step > 0; step >>= 1) bits[word] |= __shfl_xor_sync(0xffffffffu, bits[word], step);
      if (threadIdx.x == 0 && bits[word]) {
        unsigned* to = after + (long long)piece[0] * words + from + word;
        if (piece[3] < 0)
          *to = bits[word];
        else
          atomicOr(to, bits[word]);
      }
    }
  }
}

// How many bits are set in every row, or whether any is.
extern "C" __global__ void count_bits(const unsigned* bits, int* counts, int height, int words, int any) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= height) return;
  int total = 0;
  for (int word = 0; word < words; word++) total += __popc(bits[(long long)row * words + word]);
  counts[row] = any ? total > 0 : total;
}

// Numbers the marked nodes by their running count: node of every row, row of every node, mask of the rows, and
// how many there are.
extern "C" __global__ void assign_rows(const long long* running, int* nodes, int* row_of_node,
                                       unsigned char* mask, long long* size, int count, int length) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  long long total = running[count - 1];
  if (at < count) {
    bool present = running[at] > (at ? running[at - 1] : 0);
    row_of_node[at] = present ? (int)running[at] - 1 : -1;
    if (present) nodes[running[at] - 1] = at;
  }
  if (at < length) {
    mask[at] = at < total;
    if (at >= total) nodes[at] = -1;
  }
  if (at == 0) size[0] = total;
}

// ---- draws --------------------------------------------------------------------------------------------------

// A random-looking number, decided by a key and an index: dropout draws it again in the backward pass instead of
// storing it.
__device__ __forceinline__ unsigned scrambled(unsigned value) {
  value ^= value >> 16;
  value *= 0x85ebca6bu;
  value ^= value >> 13;
  value *= 0xc2b2ae35u;
  return value ^ (value >> 16);
}

__device__ __forceinline__ unsigned drawn(const int* key, unsigned index) {
  return scrambled(scrambled(index + (unsigned)key[0]) ^ (unsigned)key[1]);
}

// Distinct numbers below total: the images of 0, 1, 2 ... under a permutation that the key decides, a Feistel
// network over a power of four, applied until the image falls below total. If total is less than count, the rest
// repeats the first.
extern "C" __global__ void draw_distinct(const long long* total, const int* key, long long* out, int count) {
  int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= count) return;
  unsigned long long size = total[0], value = index < size ? index : 0;
  int half = 4;
  while ((1ull << (2 * half)) < size) half++;
  unsigned mask = (1u << half) - 1u;
  do {
    unsigned left = (unsigned)(value >> half), right = (unsigned)value & mask;
    for (unsigned round = 0; round < 8; round++) {
      unsigned next = (left ^ drawn(key, right + (round << 27) + round * 0x9e3779b9u)) & mask;
      left = right;
      right = next;
    }
    value = ((unsigned long long)left << half) | right;
  } while (value >= size);
  out[index] = (long long)value;
}

// ---- a layer: batch norm, activation, dropout ---------------------------------------------------------------

// Four adjacent columns of a row, in one read if rows are aligned.
__device__ __forceinline__ void read_four(float* four, const float* matrix, long long row, int column, int width) {
  if (width % 4 == 0) {
    float4 read = *(const float4*)(matrix + row * width + column);
    four[0] = read.x, four[1] = read.y, four[2] = read.z, four[3] = read.w;
  } else {
    for (int part = 0; part < 4; part++)
      four[part] = column + part < width ? matrix[row * width + column + part] : 0.f;
  }
}

__device__ __forceinline__ void write_four(const float* four, float* matrix, long long row, int column, int width) {
  if (width % 4 == 0) {
    *(float4*)(matrix + row * width + column) = make_float4(four[0], four[1], four[2], four[3]);
  } else {
    for (int part = 0; part < 4; part++)
      if (column + part < width) matrix[row * width + column + part] = four[part];
  }
}

// Sums over the rows of threads of a block, as a tree; every thread gets the sums of its four columns.
__device__ __forceinline__ void over_lanes(float* four) {
  __shared__ float4 parts[ROWS_FINISHED][32];
  __syncthreads();
  parts[threadIdx.y][threadIdx.x] = make_float4(four[0], four[1], four[2], four[3]);
  for (int half = blockDim.y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half) {
      float4 *to = &parts[threadIdx.y][threadIdx.x], more = parts[threadIdx.y + half][threadIdx.x];
      to->x += more.x, to->y += more.y, to->z += more.z, to->w += more.w;
    }
  }
  __syncthreads();
  float4 total = parts[0][threadIdx.x];
  four[0] = total.x, four[1] = total.y, four[2] = total.z, four[3] = total.w;
}

// Mean and sum of squared deviations of every column over a chunk of rows.
extern "C" __global__ void moments(const float* values, const unsigned char* mask, float* means,
                                   float* deviations, float* sizes, int height, int width, int chunk) {
  int column = blockIdx.x * NARROW + 4 * threadIdx.x, size = 0;
  int first = blockIdx.y * chunk, last = column < width ? min(height, first + chunk) : first;
  float mean[4] = {0.f, 0.f, 0.f, 0.f}, squares[4] = {0.f, 0.f, 0.f, 0.f}, four[4];
  // Every warp counts the whole chunk, thirty-two rows at a time.
  for (int row = first; row < min(height, first + chunk); row += 32)
    size += __popc(__ballot_sync(0xffffffffu, row + threadIdx.x < min(height, first + chunk) && mask[row + threadIdx.x]));
#pragma unroll 4
  for (int row = first + threadIdx.y; row < last; row += LANES)
    if (mask[row]) {
      read_four(four, values, row, column, width);
      for (int part = 0; part < 4; part++) mean[part] += four[part];
    }
  over_lanes(mean);
  for (int part = 0; part < 4; part++) mean[part] /= size ? size : 1;
#pragma unroll 4
  for (int row = first + threadIdx.y; row < last; row += LANES)
    if (mask[row]) {
      read_four(four, values, row, column, width);
      for (int part = 0; part < 4; part++) squares[part] += (four[part] - mean[part]) * (four[part] - mean[part]);
    }
  over_lanes(squares);
  if (threadIdx.y || column >= width) return;
  write_four(mean, means, blockIdx.y, column, width);
  write_four(squares, deviations, blockIdx.y, column, width);
  if (column == 0) sizes[blockIdx.y] = size;
}

// From chunks to batch norm: mean, inverse deviation, factor and offset of every column. Updates the running
// statistics as PyTorch does.
extern "C" __global__ void finish_moments(const float* means, const float* deviations, const float* sizes,
                                          const long long* size, const float* gamma, const float* beta,
                                          const float* bias, float* running_mean, float* running_variance,
                                          float* centre, float* inverse, float* factor, float* offset,
                                          int chunks, int width, double momentum, double epsilon) {
  int column = blockIdx.x * NARROW + 4 * threadIdx.x, last = column < width ? chunks : 0;
  float count = (float)size[0], mean[4] = {0.f, 0.f, 0.f, 0.f}, squares[4] = {0.f, 0.f, 0.f, 0.f};
  float four[4], off[4];
  for (int chunk = threadIdx.y; chunk < last; chunk += blockDim.y) {
    read_four(four, means, chunk, column, width);
    for (int part = 0; part < 4; part++) mean[part] += four[part] * sizes[chunk];
  }
  over_lanes(mean);
  for (int part = 0; part < 4; part++) mean[part] /= count;
  for (int chunk = threadIdx.y; chunk < last; chunk += blockDim.y) {
    read_four(four, means, chunk, column, width);
    read_four(off, deviations, chunk, column, width);
    for (int part = 0; part < 4; part++)
      squares[part] += off[part] + sizes[chunk] * (four[part] - mean[part]) * (four[part] - mean[part]);
  }
  over_lanes(squares);
  if (threadIdx.y) return;
  for (int part = 0; part < 4 && column < width; part++, column++) {
    float root = rsqrtf(squares[part] / count + (float)epsilon);
    centre[column] = mean[part];
    inverse[column] = root;
    factor[column] = gamma[column] * root;
    offset[column] = beta[column] - mean[part] * gamma[column] * root;
    running_mean[column] += (float)momentum * (mean[part] + bias[column] - running_mean[column]);
    running_variance[column] += (float)momentum * (squares[part] / (count - 1.f) - running_variance[column]);
  }
}

__device__ __forceinline__ float kept(const int* key, long long index, unsigned bound, float scale) {
  return bound == 0u || drawn(key, (unsigned)index) >= bound ? scale : 0.f;
}

// out = dropout(prelu(factor * value + offset)).
extern "C" __global__ void activate(const float* values, const float* factor, const float* offset,
                                    const float* slope, const unsigned char* mask, const int* key, float* out,
                                    int width, int bound, double keep) {
  long long row = blockIdx.x;
  bool needed = mask[row];
  for (int column = 4 * threadIdx.x; column < width; column += 4 * blockDim.x) {
    float four[4] = {0.f, 0.f, 0.f, 0.f}, scale[4], shift[4];
    if (needed) {
      read_four(four, values, row, column, width);
      read_four(scale, factor, 0, column, width);
      read_four(shift, offset, 0, column, width);
      for (int part = 0; part < 4; part++) {
        float z = scale[part] * four[part] + shift[part];
        four[part] = (z > 0.f ? z : slope[0] * z) * kept(key, row * width + column + part, bound, (float)keep);
      }
    }
    write_four(four, out, row, column, width);
  }
}

// Sums over a chunk of rows: of the gradient of z = factor * value + offset, of that times the centred value, and
// of the gradient of the slope. Without batch norm the gradient of the value is known at once and written too.
extern "C" __global__ void activate_sums(const float* values, const float* factor, const float* offset,
                                         const float* centre, const float* slope, const unsigned char* mask,
                                         const int* key, const float* gradient, float* sums, float* out,
                                         int height, int width, int chunk, int chunks, int normal, int bound,
                                         double keep) {
  int column = blockIdx.x * NARROW + 4 * threadIdx.x;
  int first = blockIdx.y * chunk, last = column < width ? min(height, first + chunk) : first;
  float own[4] = {0.f, 0.f, 0.f, 0.f}, centred[4] = {0.f, 0.f, 0.f, 0.f}, of_slope[4] = {0.f, 0.f, 0.f, 0.f};
  float scale[4], shift[4], middle[4], four[4], incoming[4], back[4];
  if (column < width) {
    read_four(scale, factor, 0, column, width);
    read_four(shift, offset, 0, column, width);
    read_four(middle, centre, 0, column, width);
  }
  float negative_slope = slope[0];
#pragma unroll 2
  for (int row = first + threadIdx.y; row < last; row += LANES) {
    bool needed = mask[row];
    if (needed) {
      read_four(four, values, row, column, width);
      read_four(incoming, gradient, row, column, width);
    }
    for (int part = 0; part < 4; part++) {
      back[part] = 0.f;
      if (!needed) continue;
      float z = scale[part] * four[part] + shift[part];
      float passed = incoming[part] * kept(key, (long long)row * width + column + part, bound, (float)keep);
      float of_z = z > 0.f ? passed : negative_slope * passed;
      of_slope[part] += z > 0.f ? 0.f : passed * z;
      own[part] += of_z;
      centred[part] += of_z * (four[part] - middle[part]);
      back[part] = scale[part] * of_z;
    }
    if (!normal) write_four(back, out, row, column, width);
  }
  over_lanes(own);
  over_lanes(centred);
  over_lanes(of_slope);
  if (threadIdx.y || column >= width) return;
  long long plane = (long long)chunks * width;
  write_four(own, sums, blockIdx.y, column, width);
  write_four(centred, sums + plane, blockIdx.y, column, width);
  write_four(of_slope, sums + 2 * plane, blockIdx.y, column, width);
}

// From chunks to gradients: of the shift, of the scale and of the slope, per column. With batch norm the gradient of
// the values also has a constant term and one linear in the value, per column.
extern "C" __global__ void finish_sums(const float* sums, const float* factor, const float* centre,
                                       const float* inverse, const long long* size, float* shift, float* scale,
                                       float* slope, float* constant, float* linear, int chunks, int width,
                                       int normal) {
  int column = blockIdx.x * NARROW + 4 * threadIdx.x, last = column < width ? chunks : 0;
  long long plane = (long long)chunks * width;
  float totals[3][4] = {{0.f, 0.f, 0.f, 0.f}, {0.f, 0.f, 0.f, 0.f}, {0.f, 0.f, 0.f, 0.f}}, four[4];
  for (int chunk = threadIdx.y; chunk < last; chunk += blockDim.y)
    for (int kind = 0; kind < 3; kind++) {
      read_four(four, sums + kind * plane, chunk, column, width);
      for (int part = 0; part < 4; part++) totals[kind][part] += four[part];
    }
  for (int kind = 0; kind < 3; kind++) over_lanes(totals[kind]);
  if (threadIdx.y) return;
  float count = (float)size[0];
  for (int part = 0; part < 4 && column < width; part++, column++) {
    float root = normal ? inverse[column] : 1.f;
    shift[column] = totals[0][part];
    scale[column] = root * totals[1][part];
    slope[column] = totals[2][part];
    if (!normal) continue;
    linear[column] = -factor[column] * root * root * totals[1][part] / count;
    constant[column] = -factor[column] * totals[0][part] / count - linear[column] * centre[column];
  }
}

// The gradient of the values under batch norm: factor * (gradient of z) + constant + linear * value.
extern "C" __global__ void activate_gradient(const float* values, const float* factor, const float* offset,
                                             const float* slope, const unsigned char* mask, const int* key,
                                             const float* constant, const float* linear, const float* gradient,
                                             float* out, int width, int bound, double keep) {
  long long row = blockIdx.x;
  bool needed = mask[row];
  for (int column = 4 * threadIdx.x; column < width; column += 4 * blockDim.x) {
    float four[4] = {0.f, 0.f, 0.f, 0.f}, incoming[4], scale[4], shift[4], constants[4], linears[4];
    if (needed) {
      read_four(four, values, row, column, width);
      read_four(incoming, gradient, row, column, width);
      read_four(scale, factor, 0, column, width);
      read_four(shift, offset, 0, column, width);
      read_four(constants, constant, 0, column, width);
      read_four(linears, linear, 0, column, width);
      for (int part = 0; part < 4; part++) {
        float z = scale[part] * four[part] + shift[part];
        float passed = incoming[part] * kept(key, row * width + column + part, bound, (float)keep);
        float of_z = z > 0.f ? passed : slope[0] * passed;
        four[part] = scale[part] * of_z + constants[part] + linears[part] * four[part];
      }
    }
    write_four(four, out, row, column, width);
  }
}

// ---- rows of length one, and their contrast -----------------------------------------------------------------

// The sum of one number per thread, returned to all threads of the block.
__device__ __forceinline__ float over_block(float value) {
  __shared__ float parts[32];
  for (int step = 16; step > 0; step >>= 1) value += __shfl_xor_sync(0xffffffffu, value, step);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) parts[threadIdx.x >> 5] = value;
  __syncthreads();
  float total = 0.f;
  for (int warp = 0; warp < blockDim.x / 32; warp++) total += parts[warp];
  return total;
}

extern "C" __global__ void unit_rows(const float* values, float* out, float* norms, int width) {
  const float* row = values + (long long)blockIdx.x * width;
  float square = 0.f;
  for (int column = threadIdx.x; column < width; column += blockDim.x) square += row[column] * row[column];
  float norm = fmaxf(sqrtf(over_block(square)), 1e-12f);
  for (int column = threadIdx.x; column < width; column += blockDim.x)
    out[(long long)blockIdx.x * width + column] = row[column] / norm;
  if (threadIdx.x == 0) norms[blockIdx.x] = norm;
}

extern "C" __global__ void unit_rows_gradient(const float* unit, const float* norms, const float* gradient,
                                              float* out, int width) {
  long long start = (long long)blockIdx.x * width;
  float along = 0.f;
  for (int column = threadIdx.x; column < width; column += blockDim.x)
    along += unit[start + column] * gradient[start + column];
  along = over_block(along);
  for (int column = threadIdx.x; column < width; column += blockDim.x)
    out[start + column] = (gradient[start + column] - unit[start + column] * along) / norms[blockIdx.x];
}

// One anchor per block: its most similar entries of the pool attract, random ones repel. Writes the anchor's term of
// the loss and that term's gradient. Only the first size[0] entries of the pool count; so do anchors if they are the
// pool. A negative that is drawn twice adds the same number twice, so the order does not matter.
extern "C" __global__ void contrast(const float* similarities, const long long* anchors, const long long* pool,
                                    const long long* size, const int* key, float* gradient, float* losses,
                                    int width, int positives, int negatives, int own, int anchors_are_pool,
                                    double weight) {
  __shared__ float tops[32];
  __shared__ int top_columns[32];
  float *candidates = (float*)memory, *gradients = candidates + width;
  const float* row = similarities + (long long)blockIdx.x * width;
  float* out = gradient + (long long)blockIdx.x * width;
  int counted = (int)size[0], thread = threadIdx.x, warps = blockDim.x / 32;
  if (anchors_are_pool && blockIdx.x >= counted) {
    for (int column = thread; column < width; column += blockDim.x) out[column] = 0.f;
    if (thread == 0) losses[blockIdx.x] = 0.f;
    return;
  }
  float fraction = 1.f / (anchors_are_pool ? counted : gridDim.x);
  float push = 2.f * (float)weight / negatives * fraction, pull = -2.f / positives * fraction;
  long long anchor = anchors[blockIdx.x];
  for (int column = thread; column < width; column += blockDim.x) {
    candidates[column] = column < counted && (own || pool[column] != anchor) ? row[column] : BELOW_ALL;
    gradients[column] = 0.f;
  }
  __syncthreads();
  float repelled = 0.f;
  for (int number = thread; number < negatives; number += blockDim.x) {
    unsigned random = drawn(key, blockIdx.x * negatives + number);
    int column = (int)(((unsigned long long)random * (unsigned)counted) >> 32);
    float similarity = row[column];
    repelled += similarity * similarity;
    atomicAdd(gradients + column, push * similarity);
  }
  repelled = over_block(repelled);
  float attracted = 0.f;
  for (int number = 0; number < positives; number++) {
    float top = BELOW_ALL;
    int best = width;
    for (int column = thread; column < width; column += blockDim.x)
      if (candidates[column] > top) {
        top = candidates[column];
        best = column;
      }
    for (int step = 16; step > 0; step >>= 1) {
      float other = __shfl_xor_sync(0xffffffffu, top, step);
      int other_best = __shfl_xor_sync(0xffffffffu, best, step);
      if (other > top || (other == top && other_best < best)) {
        top = other;
        best = other_best;
      }
    }
    if ((thread & 31) == 0) {
      tops[thread >> 5] = top;
      top_columns[thread >> 5] = best;
    }
    __syncthreads();
    for (int warp = 0; warp < warps; warp++)
      if (tops[warp] > top || (tops[warp] == top && top_columns[warp] < best)) {
        top = tops[warp];
        best = top_columns[warp];
      }
    if (best < width) {
      attracted += top;
      if (thread == 0) {
        gradients[best] += pull;
        candidates[best] = BELOW_ALL;
      }
    }
    __syncthreads();
  }
  for (int column = thread; column < width; column += blockDim.x) out[column] = gradients[column];
  if (thread == 0)
    losses[blockIdx.x] = fraction * (-2.f * attracted / positives + (float)weight * repelled / negatives);
}
