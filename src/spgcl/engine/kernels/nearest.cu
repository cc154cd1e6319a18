// Nearest neighbours: the few largest entries of long rows, and the best entry of each group.
//
// Of equal entries the one of the lower column comes first. NaN is never chosen before a number.

#define THREADS 256
#define WARPS (THREADS / 32)
#define INF __int_as_float(0x7f800000)

struct Entry {
  float value;
  int column;
};

__device__ __forceinline__ bool precedes(Entry one, Entry other) {
  return one.value > other.value || (one.value == other.value && one.column < other.column);
}

// The entry of a warp that precedes all others, in every lane.
__device__ __forceinline__ Entry first_of_warp(Entry own) {
  for (int step = 16; step > 0; step >>= 1) {
    Entry other = {__shfl_xor_sync(0xffffffffu, own.value, step), __shfl_xor_sync(0xffffffffu, own.column, step)};
    if (precedes(other, own)) own = other;
  }
  return own;
}

// The next entry after `last` among the columns of a thread, which are every THREADS-th.
__device__ Entry next_after(Entry last, const float* row, int width) {
  Entry best = {-INF, width};
#pragma unroll 8
  for (int column = threadIdx.x; column < width; column += THREADS) {
    Entry entry = {row[column], column};
    if (precedes(last, entry) && precedes(entry, best)) best = entry;
  }
  return best;
}

// Columns of the `count` largest entries of a row, one block per row. Only the thread that had the last one searches
// again.
extern "C" __global__ void largest_columns(const float* values, long long* columns, int width, int stride, int count) {
  __shared__ Entry found[WARPS];
  const float* row = values + (long long)blockIdx.x * stride;
  Entry own = next_after({INF, -1}, row, width);
  for (int rank = 0; rank < count; rank++) {
    Entry top = first_of_warp(own);
    if (threadIdx.x % 32 == 0) found[threadIdx.x / 32] = top;
    __syncthreads();
    for (int warp = 0; warp < WARPS; warp++)
      if (precedes(found[warp], top)) top = found[warp];
    if (threadIdx.x == 0) columns[(long long)blockIdx.x * count + rank] = min(top.column, width - 1);
    if (own.column == top.column) own = next_after(top, row, width);
    __syncthreads();
  }
}

// Rows hold `groups` groups of `size` entries: the position of the largest sum of entry and offset in each group, one
// warp per group.
extern "C" __global__ void best_places(const float* values, const float* offsets, int* best, int number, int groups,
                                       int size) {
  int index = blockIdx.x * WARPS + threadIdx.x / 32;
  if (index >= number) return;
  const float* own_offsets = offsets + index % groups * size;
  const float* own_values = values + (long long)index * size;
  Entry top = {-INF, size};
  for (int position = threadIdx.x % 32; position < size; position += 32) {
    Entry entry = {own_values[position] + own_offsets[position], position};
    if (precedes(entry, top)) top = entry;
  }
  top = first_of_warp(top);
  if (threadIdx.x % 32 == 0) best[index] = min(top.column, size - 1);
}
