#include "cache/store/space.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { CHUNKS_MAX = 1 << 13, WORD_BITS = 64 };

_Static_assert((uint64_t)CHUNKS_MAX *SPACE_CHUNK_BYTES == (UINT64_C(1) << 32) * SPACE_STEP_BYTES,
               "each step of the range has a number of 32 bits");

char *space_base;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t chunk_count;                     /* of the range; 0: it is not reserved */
static uint64_t taken[CHUNKS_MAX / WORD_BITS]; /* a bit for each chunk */
static size_t first_word;                      /* the words before have no free chunk */

/* How many chunks the range may have: under `ulimit -v`, the rest of the process needs addresses,
 * too. */
static size_t most_chunks(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_AS, &limit) != 0 ||
        limit.rlim_cur / 2 / SPACE_CHUNK_BYTES >= (rlim_t)CHUNKS_MAX)
        return CHUNKS_MAX;
    return (size_t)(limit.rlim_cur / 2 / SPACE_CHUNK_BYTES);
}

static bool reserve(void)
{
    for (size_t count = most_chunks(); count != 0; count /= 2) {
        void *range = mmap(NULL, count * SPACE_CHUNK_BYTES, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range == MAP_FAILED)
            continue;
        space_base = range;
        chunk_count = count;
        return true;
    }
    return false;
}

/* The number of a chunk that was free; chunk_count: there is none. */
static size_t mark_taken(void)
{
    for (; first_word * WORD_BITS < chunk_count; first_word++) {
        if (taken[first_word] == UINT64_MAX)
            continue;
        unsigned bit = (unsigned)__builtin_ctzll(~taken[first_word]);
        size_t number = first_word * WORD_BITS + bit;
        if (number >= chunk_count)
            break;
        taken[first_word] |= UINT64_C(1) << bit;
        return number;
    }
    return chunk_count;
}

static void mark_free(size_t number)
{
    size_t word = number / WORD_BITS;

    taken[word] &= ~(UINT64_C(1) << number % WORD_BITS);
    first_word = word < first_word ? word : first_word;
}

static void *take(void)
{
    size_t number = chunk_count != 0 || reserve() ? mark_taken() : 0;

    if (number == chunk_count)
        return NULL;
    char *chunk = space_base + number * SPACE_CHUNK_BYTES;
    if (mprotect(chunk, SPACE_CHUNK_BYTES, PROT_READ | PROT_WRITE) != 0) {
        mark_free(number);
        return NULL;
    }
    /* a huge page would stay in use until each of its 512 pages is empty */
    (void)madvise(chunk, SPACE_CHUNK_BYTES, MADV_NOHUGEPAGE);
    return chunk;
}

void *space_take_chunk(void)
{
    (void)pthread_mutex_lock(&lock);
    void *chunk = take();
    (void)pthread_mutex_unlock(&lock);
    return chunk;
}

void space_return_chunk(void *chunk)
{
    if (mmap(chunk, SPACE_CHUNK_BYTES, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        (void)madvise(chunk, SPACE_CHUNK_BYTES, MADV_DONTNEED); /* too many mappings */
    (void)pthread_mutex_lock(&lock);
    mark_free((size_t)((char *)chunk - space_base) / SPACE_CHUNK_BYTES);
    (void)pthread_mutex_unlock(&lock);
}
