// Executes threadblock programs of all ranks on one GPU, the ranks beside each other.
//
// A block stands for a threadblock of a rank. Connections are FIFOs in device memory, with the slots,
// call sizes, slices, lines and flags of the protocols of NCCL (runtime contract 4.3 to 4.7). What
// differs from a job on many GPUs: no wire lies between sender and receiver, and all ranks share
// the memory and the L2 cache of one GPU.

typedef unsigned long long u64;
typedef long long i64;

enum { SEND_OP, RECV_OP, RCS, RRS, RRC, RRCS, COPY, REDUCE };
enum { SIMPLE, LL, LL128 };

// Columns of the tables, as tests/gpu/tables.py fills them.
enum { B_RANK, B_SEND, B_RECV, B_FIRST, B_LAST, B_COLUMNS };
enum { U_OP, U_SRC_BUFFER, U_SRC, U_DST_BUFFER, U_DST, U_COUNT, U_ORDINAL, U_SIGNALS,
       U_WAIT_FIRST, U_WAIT_LAST, U_MORE_FIRST, U_MORE_LAST, U_COLUMNS };

const int STEPS = 8;                    // slots of a connection
__device__ constexpr i64 SLOT(int protocol) {
  return protocol == SIMPLE ? 512 << 10 : protocol == LL ? 64 << 10 : 614400;
}
const i64 LEAST_SLICE = 32 << 10;       // a slice of Simple is at least 1/32 of its two slots
const int LINE = 16;                    // words of 8 bytes between counters: 128 bytes

struct Pack { u64 a, b; };

__device__ __forceinline__ Pack load(const char* p) {
  Pack v;
  asm volatile("ld.volatile.global.v2.u64 {%0,%1}, [%2];" : "=l"(v.a), "=l"(v.b) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ void store(char* p, Pack v) {
  asm volatile("st.volatile.global.v2.u64 [%0], {%1,%2};" :: "l"(p), "l"(v.a), "l"(v.b) : "memory");
}
__device__ __forceinline__ u64 load_word(const char* p) { return *(volatile const u64*)p; }
__device__ __forceinline__ void store_word(char* p, u64 v) { *(volatile u64*)p = v; }
__device__ __forceinline__ u64 now() {
  u64 t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}
__device__ __forceinline__ void barrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ u64 sum(u64 x, u64 y) {  // two numbers of float32
  float lo = __uint_as_float((unsigned)x) + __uint_as_float((unsigned)y);
  float hi = __uint_as_float((unsigned)(x >> 32)) + __uint_as_float((unsigned)(y >> 32));
  return (u64)__float_as_uint(hi) << 32 | __float_as_uint(lo);
}
__device__ __forceinline__ Pack sum(Pack x, Pack y) { return {sum(x.a, y.a), sum(x.b, y.b)}; }

struct Block {
  int tid, threads, workers;
  char *in, *out;                  // slots received from and sent to
  volatile u64 *in_tail, *in_head, *out_tail, *out_head;
  u64 received, sent;              // slots of each connection so far
  u64 deadline;
  volatile int* stuck;

  // Wait until a counter has come far enough; after the deadline everyone runs through.
  __device__ bool reached(const volatile u64* counter, u64 wanted) {
    for (unsigned tries = 1; *counter < wanted; ++tries)
      if (tries % 1024 == 0 && (*stuck || now() > deadline)) { *stuck = 1; return false; }
    return true;
  }
  __device__ bool expired(unsigned tries) {
    if (tries % 1024 || !(*stuck || now() > deadline)) return false;
    *stuck = 1;
    return true;
  }
  __device__ void sync() { barrier(0, threads); }

  template <int PROTOCOL, bool RECV, bool SEND, bool SRC, bool DST>
  __device__ void call(const char* src, char* dst, i64 bytes) {
    if constexpr (PROTOCOL == SIMPLE) simple<RECV, SEND, SRC, DST>(src, dst, bytes);
    else if constexpr (PROTOCOL == LL) lines<RECV, SEND, SRC, DST>(src, dst, bytes);
    else warps<RECV, SEND, SRC, DST>(src, dst, bytes);
  }

  // Two slices of two slots each; whole slices are announced by a counter.
  template <bool RECV, bool SEND, bool SRC, bool DST>
  __device__ void simple(const char* src, char* dst, i64 bytes) {
    i64 width = max((bytes + 127) / 128 * 64, LEAST_SLICE), offset = 0;
    for (int slice = 0; slice < 2; ++slice, offset += width) {
      i64 size = max((i64)0, min(width, bytes - offset));
      if (tid < workers) {
        if (RECV && tid == 0) reached(in_tail, received + 2);
        if (SEND && tid == 8) reached(out_head, sent + 2 - min(sent + 2, (u64)STEPS));
        if (size) {
          barrier(1, workers);
          move<RECV, SEND, SRC, DST>(in + received % STEPS * SLOT(SIMPLE), src + offset,
                                     dst + offset, out + sent % STEPS * SLOT(SIMPLE), size);
        }
      }
      sync();
      if (RECV) received += 2;
      if (SEND) sent += 2;
      if (SEND && tid == workers) { __threadfence_system(); *out_tail = sent; }
      if (RECV && tid == workers + 8) *in_head = received;
    }
  }
  template <bool RECV, bool SEND, bool SRC, bool DST>
  __device__ void move(const char* in, const char* src, char* dst, char* out, i64 bytes) {
    const int UNROLL = 4;
    i64 packs = bytes / 16, stride = (i64)workers * UNROLL;
    for (i64 first = tid / 32 * 32 * UNROLL + tid % 32; first < packs; first += stride) {
      Pack v[UNROLL], w[UNROLL];
      #pragma unroll
      for (int k = 0; k < UNROLL; ++k) {
        i64 at = first + 32 * k;
        if (at >= packs) continue;
        if (RECV) v[k] = load(in + 16 * at);
        if (SRC) (RECV ? w : v)[k] = load(src + 16 * at);
      }
      #pragma unroll
      for (int k = 0; k < UNROLL; ++k) {
        i64 at = first + 32 * k;
        if (at >= packs) continue;
        if (RECV && SRC) v[k] = sum(v[k], w[k]);
        if (DST) store(dst + 16 * at, v[k]);
        if (SEND) store(out + 16 * at, v[k]);
      }
    }
  }

  // Lines of 16 bytes, 4 of data and 4 of flag twice; one slot is a call.
  template <bool RECV, bool SEND, bool SRC, bool DST>
  __device__ void lines(const char* src, char* dst, i64 bytes) {
    if (SEND) take_slot();
    const char* from = in + received % STEPS * SLOT(LL);
    char* to = out + sent % STEPS * SLOT(LL);
    for (i64 at = tid; at < bytes / 8; at += threads) {
      u64 v = SRC ? load_word(src + 8 * at) : 0;
      if (RECV) {
        u64 arrived = line_word(from + 16 * at, (unsigned)(received + 1));
        v = SRC ? sum(v, arrived) : arrived;
      }
      u64 flag = (u64)(unsigned)(sent + 1) << 32;
      if (SEND) store(to + 16 * at, {flag | (unsigned)v, flag | v >> 32});
      if (DST) store_word(dst + 8 * at, v);
    }
    give_slot<RECV, SEND>();
  }
  __device__ u64 line_word(const char* line, unsigned flag) {
    for (unsigned tries = 1;; ++tries) {
      Pack v = load(line);
      if ((unsigned)(v.a >> 32) == flag && (unsigned)(v.b >> 32) == flag || expired(tries))
        return (u64)(unsigned)v.b << 32 | (unsigned)v.a;
    }
  }
  __device__ void take_slot() {
    if (tid == 0) reached(out_head, sent + 1 - min(sent + 1, (u64)STEPS));
    sync();
  }
  template <bool RECV, bool SEND>
  __device__ void give_slot() {
    sync();
    if (RECV) { ++received; if (tid == 0) *in_head = received; }
    if (SEND) ++sent;
  }

  // Lines of 128 bytes, the last 8 of them the flag; a warp moves 16 lines, 1920 bytes of data.
  // The lane of a flag holds 16 bytes of data in one line of two, and lends half to the other.
  template <bool RECV, bool SEND, bool SRC, bool DST>
  __device__ void warps(const char* src, char* dst, i64 bytes) {
    if (SEND) take_slot();
    const char* from = in + received % STEPS * SLOT(LL128);
    char* to = out + sent % STEPS * SLOT(LL128);
    const int lane = tid % 32;
    const bool flagged = lane % 8 == 7;
    for (i64 part = tid / 32; part * 1920 < bytes; part += threads / 32) {
      Pack v[4], w[4];
      i64 place[4];
      bool whole[4];
      #pragma unroll
      for (int g = 0; g < 4; ++g) {
        place[g] = part * 1920 + 16 * (g * 32 - 4 * (g / 2) + lane - (g % 2) * (lane / 8));
        whole[g] = place[g] < bytes && !(flagged && g % 2);
        v[g] = {0, 0};
        if (SRC && whole[g]) v[g] = load(src + place[g]);
      }
      if (RECV) {
        for (unsigned tries = 1;; ++tries) {
          bool missing = false;
          #pragma unroll
          for (int g = 0; g < 4; ++g) {
            w[g] = load(from + part * 2048 + g * 512 + lane * 16);
            missing |= flagged && w[g].b != received + 1;
          }
          if (!__any_sync(0xffffffff, missing)) break;
          if (__any_sync(0xffffffff, expired(tries))) break;
        }
        if (flagged) { w[0].b = w[1].a; w[2].b = w[3].a; }
        #pragma unroll
        for (int g = 0; g < 4; ++g) v[g] = SRC ? sum(v[g], w[g]) : w[g];
      }
      if (DST) {
        #pragma unroll
        for (int g = 0; g < 4; ++g) if (whole[g]) store(dst + place[g], v[g]);
      }
      if (SEND) {
        if (flagged) {
          v[1] = {v[0].b, sent + 1};
          v[3] = {v[2].b, sent + 1};
          v[0].b = v[2].b = sent + 1;
        }
        __syncwarp();
        #pragma unroll
        for (int g = 0; g < 4; ++g) store(to + part * 2048 + g * 512 + lane * 16, v[g]);
      }
    }
    give_slot<RECV, SEND>();
  }

  // A copy, or the sum of a chunk and the chunks of one buffer that follow in a chain.
  __device__ void local(bool adds, const char* src, char* dst, i64 bytes, const int* more,
                        int others, i64 chunk) {
    if (tid < workers) {
      const int UNROLL = 4;
      i64 packs = bytes / 16, stride = (i64)workers * UNROLL;
      for (i64 first = tid / 32 * 32 * UNROLL + tid % 32; first < packs; first += stride) {
        Pack v[UNROLL];
        #pragma unroll
        for (int k = 0; k < UNROLL; ++k)
          if (first + 32 * k < packs) v[k] = load(src + 16 * (first + 32 * k));
        if (adds) {
          #pragma unroll
          for (int k = 0; k < UNROLL; ++k)
            if (first + 32 * k < packs) v[k] = sum(v[k], load(dst + 16 * (first + 32 * k)));
          for (int n = 0; n < others; ++n) {
            const char* next = src + more[n] * chunk;
            #pragma unroll
            for (int k = 0; k < UNROLL; ++k)
              if (first + 32 * k < packs) v[k] = sum(v[k], load(next + 16 * (first + 32 * k)));
          }
        }
        #pragma unroll
        for (int k = 0; k < UNROLL; ++k)
          if (first + 32 * k < packs) store(dst + 16 * (first + 32 * k), v[k]);
      }
    }
    sync();
  }
};

// Blocks begin together: a program is timed from the last arrival on.
__device__ void assemble(Block& self, u64* arrived, u64 wanted) {
  if (self.tid == 0) {
    atomicAdd(arrived, 1ull);
    self.reached(arrived, wanted);
  }
  self.sync();
}

__device__ char* buffer(const u64* begins, int which) {
  return (char*)(which == 0 ? begins[0] : which == 1 ? begins[1] : begins[2]);
}

template <int PROTOCOL>
__device__ void interpret(
    const int* blocks, const int* units, const int* waits, const int* more, const u64* bases,
    char* fifos, u64* counters, u64* flags, u64* steps, u64* times, u64* arrived, int* stuck,
    i64 chunk, i64 tile_bytes, int tiles, int group, u64 work, int fence, i64 patience) {
  const int b = blockIdx.x;
  const int* own = blocks + b * B_COLUMNS;
  const u64* base = bases + own[B_RANK] * 3;
  const int to = own[B_SEND], from = own[B_RECV];
  Block self;
  self.tid = threadIdx.x;
  self.threads = blockDim.x;
  self.workers = blockDim.x - (PROTOCOL == SIMPLE ? 32 : 0);  // one warp more posts
  self.in = fifos + from * STEPS * SLOT(PROTOCOL);
  self.out = fifos + to * STEPS * SLOT(PROTOCOL);
  self.in_tail = counters + 2 * from * LINE;
  self.in_head = counters + (2 * from + 1) * LINE;
  self.out_tail = counters + 2 * to * LINE;
  self.out_head = counters + (2 * to + 1) * LINE;
  self.received = steps[2 * b];
  self.sent = steps[2 * b + 1];
  self.deadline = now() + patience;
  self.stuck = stuck;
  extern __shared__ int table[];  // the runtime, too, holds its steps in shared memory
  const int first_unit = own[B_FIRST], own_units = own[B_LAST] - first_unit;
  for (int k = self.tid; k < own_units * U_COLUMNS; k += self.threads)
    table[k] = units[first_unit * U_COLUMNS + k];
  const int first_wait = own_units ? units[first_unit * U_COLUMNS + U_WAIT_FIRST] : 0;
  const int own_waits =
      own_units ? units[(own[B_LAST] - 1) * U_COLUMNS + U_WAIT_LAST] - first_wait : 0;
  int* awaited = table + own_units * U_COLUMNS;
  for (int k = self.tid; k < 2 * own_waits; k += self.threads)
    awaited[k] = waits[2 * first_wait + k];
  u64 buffers[3] = {base[0], base[1], base[2]};
  assemble(self, arrived, work * gridDim.x);
  if (self.tid == 0) times[2 * b] = now();
  for (int tile = 0; tile < tiles; ++tile) {
    const i64 begin = tile * tile_bytes, part = min(tile_bytes, chunk - begin);
    for (int n = 0; n < own_units; ++n) {
      const int* unit = table + n * U_COLUMNS;
      const int first = unit[U_WAIT_FIRST], many = unit[U_WAIT_LAST] - first;
      if (many) {
        for (int k = self.tid; k < many; k += self.threads) {
          const int* wait = awaited + 2 * (first - first_wait + k);
          self.reached(flags + wait[0] * LINE, work << 44 | (u64)tile << 20 | (wait[1] + 1));
        }
        self.sync();
      }
      for (int done = 0; done < unit[U_COUNT]; done += group) {
        const int chunks = min(group, unit[U_COUNT] - done);
        const i64 bytes = chunks == 1 ? part : chunks * chunk;
        const char* src = buffer(buffers, unit[U_SRC_BUFFER]) + (unit[U_SRC] + done) * chunk + begin;
        char* dst = buffer(buffers, unit[U_DST_BUFFER]) + (unit[U_DST] + done) * chunk + begin;
        switch (unit[U_OP]) {
          case SEND_OP: self.call<PROTOCOL, false, true, true, false>(src, dst, bytes); break;
          case RECV_OP: self.call<PROTOCOL, true, false, false, true>(src, dst, bytes); break;
          case RCS: self.call<PROTOCOL, true, true, false, true>(src, dst, bytes); break;
          case RRS: self.call<PROTOCOL, true, true, true, false>(src, dst, bytes); break;
          case RRC: self.call<PROTOCOL, true, false, true, true>(src, dst, bytes); break;
          case RRCS: self.call<PROTOCOL, true, true, true, true>(src, dst, bytes); break;
          default:
            self.local(unit[U_OP] == REDUCE, src, dst, bytes, more + unit[U_MORE_FIRST],
                       unit[U_MORE_LAST] - unit[U_MORE_FIRST], chunk);
        }
      }
      if (unit[U_SIGNALS] && self.tid == self.threads - 1) {
        if (fence) __threadfence();
        *(volatile u64*)(flags + b * LINE) = work << 44 | (u64)tile << 20 | (unit[U_ORDINAL] + 1);
      }
    }
  }
  self.sync();
  if (self.tid == 0) {
    times[2 * b + 1] = now();
    steps[2 * b] = self.received;
    steps[2 * b + 1] = self.sent;
  }
}

#define KERNEL(name, protocol, bound)                                                              \
  extern "C" __global__ void __launch_bounds__(bound, 1) name(                                     \
      const int* blocks, const int* units, const int* waits, const int* more, const u64* bases,    \
      char* fifos, u64* counters, u64* flags, u64* steps, u64* times, u64* arrived, int* stuck,    \
      i64 chunk, i64 tile_bytes, int tiles, int group, u64 work, int fence, i64 patience) {        \
    interpret<protocol>(blocks, units, waits, more, bases, fifos, counters, flags, steps, times,   \
                        arrived, stuck, chunk, tile_bytes, tiles, group, work, fence, patience);   \
  }
KERNEL(run_simple, SIMPLE, 544)
KERNEL(run_ll, LL, 512)
KERNEL(run_ll128, LL128, 640)

// Counts what is not as it must be; what need not be anything is not a number.
extern "C" __global__ void compare(const float* now, const float* wanted, i64 many, u64* wrong) {
  u64 found = 0;
  for (i64 k = blockIdx.x * (i64)blockDim.x + threadIdx.x; k < many; k += gridDim.x * (i64)blockDim.x)
    found += wanted[k] == wanted[k] && now[k] != wanted[k];
  if (found) atomicAdd(wrong, found);
}
