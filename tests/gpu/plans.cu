// Executes the operations of MSCCL++ plans of all ranks on one GPU, the ranks beside each other.
//
// A block stands for a threadblock of a rank. Signals, semaphores, packets and ports have the
// memory orders that the library gives them (contract of plans, 4 to 8), and only `nop` lets the
// threads of a block meet. What differs from a job on many GPUs: no wire lies between the ranks,
// all share the memory and the L2 cache of one GPU, and the proxy of a port is a block, not a
// thread of the host.

typedef unsigned long long u64;
typedef long long i64;

// Codes and columns, as tests/gpu/plan_tables.py fills them.
enum { NOP, BARRIER, MOVE, PACKETS, SIGNAL, RELAXED_SIGNAL, WAIT, RELAXED_WAIT, TAKE, GIVE,
       POST, PORT_SIGNAL, FLUSH, PIPELINE };
enum { B_RANK, B_OPS, B_MANY_OPS, B_OPERANDS, B_MANY_OPERANDS, B_IDS, B_MANY_IDS, B_HALF, B_WRAP,
       B_WORKERS, B_QUEUE, B_PROXY, B_COLUMNS };
enum { O_CODE, O_OPERANDS, O_SOURCES, O_TARGETS, O_IDS, O_MANY, O_SLICE, O_SLICES, O_A, O_B,
       O_COLUMNS };
enum { P_PLACE, P_LENGTH, P_FLAGS, P_COLUMNS };
enum { WRAPS = 1, PACKED = 2, HALVES = 4, USER = 8 };  // flags of an operand
enum { T_SOURCE, T_TARGET, T_BYTES, T_SIGNAL, T_READY, T_COLUMNS };

const int QUEUE = 128;         // triggers that wait for a proxy at most
const int LINE = 16;           // words of 8 bytes between counters: 128 bytes
const i64 END = -1;            // bytes of the trigger by which a block says that it is done
const i64 WHOLE = 1ll << 60;   // bytes of an iteration where there is no pipeline

#ifdef __CUDACC__
#include "orders.cuh"
#else
#include "shim.hpp"  // the same functions on a CPU, for a test without a GPU
#endif

__device__ __forceinline__ float4 sum(float4 x, float4 y) {
  return {x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w};
}
__device__ __forceinline__ float2 sum(float2 x, float2 y) { return {x.x + y.x, x.y + y.y}; }

struct Memory {                    // of all ranks
  char* arena;
  u64 *inbound, *expected;         // counters of channels: signals that came, those waited for
  int* semaphores;
  u64 *barriers, *meetings;        // a counter for each barrier, and for each rank
  u64 *heads, *tails, *triggers;   // of queues to proxies
  volatile int* stuck;
  u64 deadline;
  bool over;                       // whether this thread waits for nothing any more

  __device__ bool expired(unsigned tries) {
    if (!over && tries % 1024 == 0 && (*stuck || now() > deadline)) {
      *stuck = 1;
      over = true;
    }
    return over;
  }
  // Wait until a test is true; after the deadline everyone runs through.
  template <class Test>
  __device__ void until(Test test) {
    for (unsigned tries = 1; !test(); ++tries)
      if (expired(tries)) return;
  }
  __device__ u64 push(i64 queue, u64 source, u64 target, i64 bytes, u64 signal) {
    const u64 own = ticket(heads + queue * LINE);
    until([&] { return load_acquire(tails + queue * LINE) + QUEUE > own; });
    u64* slot = triggers + (queue * QUEUE + own % QUEUE) * T_COLUMNS;
    slot[T_SOURCE] = source;
    slot[T_TARGET] = target;
    slot[T_BYTES] = (u64)bytes;
    slot[T_SIGNAL] = signal;
    store_release(slot + T_READY, own + 1);
    return own;
  }
  __device__ void flush(i64 queue, u64 own) {
    until([&] { return load_acquire(tails + queue * LINE) > own; });
  }
};

struct Block {
  Memory memory;
  int tid, threads;
  i64 queue;
  const int *ids, *op;             // numbers of channels or semaphores; the operation at hand
  const i64* operands;
  unsigned flag;                   // of packets: it counts calls
  i64 half, user;                  // where the scratch, and the buffers, of this call begin
  i64 shift, wrapped, unit;        // of an iteration: its first byte, the same modulo S, its bytes

  __device__ const i64* operand(int k) const { return operands + (op[O_OPERANDS] + k) * P_COLUMNS; }

  // Bytes of an operand in this iteration, or of the slice of it that this block takes.
  __device__ i64 part(int k, i64* first) const {
    const i64 left = operand(k)[P_LENGTH] - shift, length = left < unit ? left : unit;
    const i64 grains = length / 16, slices = op[O_SLICES];
    *first = slices == 1 ? 0 : grains * op[O_SLICE] / slices * 16;
    return slices == 1 ? length : grains * (op[O_SLICE] + 1) / slices * 16 - *first;
  }
  __device__ u64 place(int k, i64 first) const {
    const i64* own = operand(k);
    const i64 flags = own[P_FLAGS], within = (flags & WRAPS ? wrapped : shift) + first;
    return own[P_PLACE] + (flags & PACKED ? 2 * within : within) + (flags & HALVES ? half : 0) +
           (flags & USER ? user : 0);
  }

  // The sum of sources, 16 bytes a thread, to all targets. S and T are how many, where few: their
  // addresses are held in registers.
  template <int S, int T>
  __device__ void move() {
    i64 first;
    const i64 many = part(0, &first) / 16;
    const float4* from[S];
    float4* to[T];
    #pragma unroll
    for (int s = 0; s < S; ++s) from[s] = (const float4*)(memory.arena + place(s, first));
    #pragma unroll
    for (int t = 0; t < T; ++t) to[t] = (float4*)(memory.arena + place(S + t, first));
    for (i64 k = tid; k < many; k += threads) {
      float4 v = from[0][k];
      #pragma unroll
      for (int s = 1; s < S; ++s) v = sum(v, from[s][k]);
      #pragma unroll
      for (int t = 0; t < T; ++t) to[t][k] = v;
    }
  }
  __device__ void move_many(int sources, int targets) {
    i64 first;
    const i64 many = part(0, &first) / 16;
    for (i64 k = tid; k < many; k += threads) {
      float4 v = ((const float4*)(memory.arena + place(0, first)))[k];
      for (int s = 1; s < sources; ++s)
        v = sum(v, ((const float4*)(memory.arena + place(s, first)))[k]);
      for (int t = sources; t < sources + targets; ++t)
        ((float4*)(memory.arena + place(t, first)))[k] = v;
    }
  }

  // The same, 8 bytes a thread; sources and targets may be packets: twice 4 bytes and a flag.
  template <int S, int T>
  __device__ void packets() {
    i64 first;
    const i64 many = part(0, &first) / 8;
    char* at[S + T];
    bool packed[S + T];
    #pragma unroll
    for (int n = 0; n < S + T; ++n) {
      at[n] = memory.arena + place(n, first);
      packed[n] = operand(n)[P_FLAGS] & PACKED;
    }
    for (i64 k = tid; k < many; k += threads) {
      float2 v = taken(at[0], packed[0], k);
      #pragma unroll
      for (int s = 1; s < S; ++s) v = sum(v, taken(at[s], packed[s], k));
      #pragma unroll
      for (int t = S; t < S + T; ++t) give(at[t], packed[t], k, v);
    }
  }
  __device__ void packets_many(int sources, int targets) {
    i64 first;
    const i64 many = part(0, &first) / 8;
    for (i64 k = tid; k < many; k += threads) {
      float2 v = {0, 0};
      for (int n = 0; n < sources + targets; ++n) {
        char* at = memory.arena + place(n, first);
        const bool packed = operand(n)[P_FLAGS] & PACKED;
        if (n >= sources) give(at, packed, k, v);
        else v = n ? sum(v, taken(at, packed, k)) : taken(at, packed, k);
      }
    }
  }
  __device__ float2 taken(const char* at, bool packed, i64 k) {
    return packed ? arrived(at + 16 * k) : *(const float2*)(at + 8 * k);
  }
  __device__ void give(char* at, bool packed, i64 k, float2 v) const {
    if (packed)
      store_packet(at + 16 * k, {__float_as_uint(v.x), flag, __float_as_uint(v.y), flag});
    else
      *(float2*)(at + 8 * k) = v;
  }
  __device__ float2 arrived(const char* packet) {
    for (unsigned tries = 1;; ++tries) {
      const uint4 v = load_packet(packet);
      if ((v.y == flag && v.w == flag) || memory.expired(tries))
        return {__uint_as_float(v.x), __uint_as_float(v.z)};
    }
  }

  // Thread k serves entry k of a list; nobody waits for it before the next `nop`.
  __device__ void entry(int code, int id) {
    if (code == SIGNAL) add_release(memory.inbound + id * LINE);
    else if (code == RELAXED_SIGNAL) add_relaxed(memory.inbound + id * LINE);
    else if (code == WAIT || code == RELAXED_WAIT) {
      const u64 wanted = ++memory.expected[id * LINE];
      const u64* counter = memory.inbound + id * LINE;
      if (code == WAIT) memory.until([&] { return load_acquire(counter) >= wanted; });
      else memory.until([&] { return load_relaxed(counter) >= wanted; });
    } else if (code == TAKE) {
      int* semaphore = memory.semaphores + id * 2 * LINE;
      const int before = subtract_acquire(semaphore);
      if (before <= 0) memory.until([&] { return load_acquire(semaphore) >= before; });
    } else if (code == GIVE) add_release(memory.semaphores + id * 2 * LINE);
    else if (code == PORT_SIGNAL) memory.push(queue, 0, 0, 0, id + 1);
    else if (code == FLUSH) memory.flush(queue, memory.push(queue, 0, 0, 0, 0));
    else if (code == POST) {
      i64 first;
      const i64 bytes = part(tid, &first) * (operand(tid)[P_FLAGS] & PACKED ? 2 : 1);
      const u64 target = place(op[O_SOURCES] + tid, first);
      const u64 own = memory.push(queue, place(tid, first), target, bytes, op[O_A] ? id + 1 : 0);
      if (op[O_B]) memory.flush(queue, own);
    }
  }
  __device__ void barrier() {
    meet();
    if (tid == 0) {
      u64* counter = memory.barriers + op[O_A] * LINE;
      const u64 size = op[O_B], wanted = (ticket(counter) / size + 1) * size;
      memory.until([&] { return load_acquire(counter) >= wanted; });
    }
    meet();
  }
  __device__ void run(const int* next) {
    op = next;
    const int code = op[O_CODE], sources = op[O_SOURCES], targets = op[O_TARGETS];
    if (code == NOP) meet();
    else if (code == BARRIER) barrier();
    else if (code == MOVE) {
      if (sources == 1 && targets == 1) move<1, 1>();
      else if (sources == 1 && targets == 2) move<1, 2>();
      else if (sources == 2 && targets == 1) move<2, 1>();
      else if (sources == 2 && targets == 2) move<2, 2>();
      else move_many(sources, targets);
    } else if (code == PACKETS) {
      if (sources == 1 && targets == 1) packets<1, 1>();
      else if (sources == 2 && targets == 2) packets<2, 2>();
      else packets_many(sources, targets);
    } else if (tid < op[O_MANY]) entry(code, ids[op[O_IDS] + tid]);
  }
  __device__ void iterate(i64 number, i64 bytes, i64 wrap) {
    shift = number * bytes;
    wrapped = shift % wrap;
    unit = bytes;
  }
};

// Moves what the threadblocks of a rank post, in their order, until all of them are done.
__device__ void serve(Memory& memory, i64 queue, u64 workers) {
  u64* now_served = (u64*)shared_memory();
  const int tid = threadIdx.x;
  u64 ended = 0;
  for (u64 taken = memory.tails[queue * LINE]; ended < workers; ++taken) {
    if (tid == 0) {
      u64* slot = memory.triggers + (queue * QUEUE + taken % QUEUE) * T_COLUMNS;
      memory.until([&] { return load_acquire(slot + T_READY) == taken + 1; });
      for (int k = 0; k < T_READY; ++k) now_served[k] = slot[k];
      now_served[T_READY] = *memory.stuck;
    }
    meet();
    if (now_served[T_READY]) return;
    const i64 bytes = (i64)now_served[T_BYTES];
    const char* from = memory.arena + now_served[T_SOURCE];
    char* to = memory.arena + now_served[T_TARGET];
    // What is posted may be packets, which others look for without any signal.
    for (i64 k = tid; k < bytes / 16; k += blockDim.x)
      store_packet(to + 16 * k, load_packet(from + 16 * k));
    ended += bytes == END;
    const u64 signal = now_served[T_SIGNAL];
    meet();
    if (tid == 0) {
      if (signal) add_release(memory.inbound + (signal - 1) * LINE);
      store_release(memory.tails + queue * LINE, taken + 1);
    }
  }
}

// Holds a block back for a while that depends on its rank, itself and the call.
__device__ void hold(Memory& memory, u64 rank, u64 number, u64 most) {
  if (!most) return;
  if (threadIdx.x == 0) {
    const u64 mixed = (rank * 2654435761ull + number * 40503ull) % 1009;
    const u64 own = (blockIdx.x * 7919ull + number * 104729ull) % 1009;
    const u64 until = now() + mixed * most / 1009 + own * most / 4036;
    memory.until([&] { return now() >= until; });
  }
  meet();
}

__device__ void work(Block& self, const i64* own, const int* ops, u64 number, i64 user) {
  self.flag = (unsigned)number + 1;
  self.half = number % 2 ? own[B_HALF] : 0;
  self.user = user;
  self.iterate(0, WHOLE, own[B_WRAP]);
  for (i64 n = 0; n < own[B_MANY_OPS]; ++n) {
    const int* head = ops + n * O_COLUMNS;
    if (head[O_CODE] != PIPELINE) {
      self.run(head);
      continue;
    }
    const int inner = head[O_MANY];
    for (i64 turn = 0; turn < head[O_A]; ++turn) {
      self.iterate(turn, head[O_B], own[B_WRAP]);
      for (int k = 1; k <= inner; ++k) self.run(head + k * O_COLUMNS);
    }
    self.iterate(0, WHOLE, own[B_WRAP]);
    n += inner;
  }
}

extern "C" __global__ void __launch_bounds__(1024, 1) run_plan(
    const i64* blocks, const int* ops, const i64* operands, const int* ids, char* arena,
    u64* inbound, u64* expected, int* semaphores, u64* barriers, u64* meetings, u64* heads,
    u64* tails, u64* triggers, u64* times, u64* arrived, int* stuck, i64 user_bytes, int calls,
    u64 launch, u64 number, u64 hold_back, i64 patience) {
  const int b = blockIdx.x, tid = threadIdx.x;
  const i64* own = blocks + b * B_COLUMNS;
  Memory memory = {arena, inbound, expected, semaphores, barriers, meetings, heads, tails,
                   triggers, stuck, now() + patience, false};
  i64* words = shared_memory();  // the library, too, holds operations in shared memory
  const i64 many = own[B_MANY_OPERANDS] * P_COLUMNS, many_ops = own[B_MANY_OPS] * O_COLUMNS;
  int* numbers = (int*)(words + many);
  for (i64 k = tid; k < many; k += blockDim.x)
    words[k] = operands[own[B_OPERANDS] * P_COLUMNS + k];
  for (i64 k = tid; k < many_ops; k += blockDim.x) numbers[k] = ops[own[B_OPS] * O_COLUMNS + k];
  for (i64 k = tid; k < own[B_MANY_IDS]; k += blockDim.x)
    numbers[many_ops + k] = ids[own[B_IDS] + k];
  if (tid == 0) {  // blocks begin together
    add_release(arrived);
    memory.until([&] { return load_acquire(arrived) >= launch * gridDim.x; });
    times[2 * b] = now();
  }
  meet();
  if (own[B_PROXY]) {
    serve(memory, own[B_QUEUE], own[B_WORKERS]);
    return;
  }
  Block self = {memory, tid, (int)blockDim.x, own[B_QUEUE], numbers + many_ops, nullptr, words};
  u64* meeting = meetings + own[B_RANK] * LINE;
  for (int call = 0; call < calls; ++call, ++number) {
    hold(memory, own[B_RANK], number, hold_back);
    work(self, own, numbers, number, call * user_bytes);
    meet();
    // The next call of a rank begins when all its threadblocks have ended this one.
    if (tid == 0) {
      if (call + 1 == calls) times[2 * b + 1] = now();
      add_release(meeting);
      if (call + 1 < calls)
        memory.until([&] { return load_acquire(meeting) >= (number + 1) * own[B_WORKERS]; });
    }
    meet();
  }
  if (tid == 0 && own[B_QUEUE] >= 0) memory.push(own[B_QUEUE], 0, 0, END, 0);
}
