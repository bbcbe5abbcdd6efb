// Accesses to memory with the orders and scopes that MSCCL++ gives them (contract of plans, 7 and 8).
// A signal releases what the threads of its block wrote before the last `nop`, at system scope; a
// semaphore does so within the GPU. Packets are read and written 16 bytes at once.

#define ORDERED_LOAD(name, type, letter, words)                                                    \
  __device__ __forceinline__ type name(const type* p) {                                            \
    type v;                                                                                        \
    asm volatile("ld." words " %0, [%1];" : "=" letter(v) : "l"(p) : "memory");                    \
    return v;                                                                                      \
  }
ORDERED_LOAD(load_acquire, u64, "l", "acquire.sys.global.u64")
ORDERED_LOAD(load_relaxed, u64, "l", "relaxed.sys.global.u64")
ORDERED_LOAD(load_acquire, int, "r", "acquire.gpu.global.s32")
__device__ __forceinline__ void add_release(u64* p) {
  asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(p), "l"(1ull) : "memory");
}
__device__ __forceinline__ void add_relaxed(u64* p) {
  asm volatile("red.relaxed.sys.global.add.u64 [%0], %1;" ::"l"(p), "l"(1ull) : "memory");
}
__device__ __forceinline__ void add_release(int* p) {
  asm volatile("red.release.gpu.global.add.s32 [%0], %1;" ::"l"(p), "r"(1) : "memory");
}
__device__ __forceinline__ int subtract_acquire(int* p) {
  int v;
  asm volatile("atom.acquire.gpu.global.add.s32 %0, [%1], %2;"
               : "=r"(v) : "l"(p), "r"(-1) : "memory");
  return v;
}
__device__ __forceinline__ u64 ticket(u64* p) {
  u64 v;
  asm volatile("atom.release.gpu.global.add.u64 %0, [%1], %2;"
               : "=l"(v) : "l"(p), "l"(1ull) : "memory");
  return v;
}
__device__ __forceinline__ void store_release(u64* p, u64 v) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
__device__ __forceinline__ uint4 load_packet(const char* p) {
  uint4 v;
  asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ void store_packet(char* p, uint4 v) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1,%2,%3,%4};"
               ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
__device__ __forceinline__ u64 now() {
  u64 t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}
__device__ __forceinline__ void meet() { __syncthreads(); }
__device__ __forceinline__ i64* shared_memory() {
  extern __shared__ i64 words[];
  return words;
}
