/*
 * space: the addresses of all records, so that a reference to one takes 32 bits: the records of
 * all pools lie in one range of addresses, in steps of 8 bytes, and 2^32 steps are 32 GiB. A record
 * has three or four references, and a table has one to each record.
 *
 *     space_base           one chunk, 4 MiB, of some pool         of another
 *     |....................|#######################|..............|###########|.........
 *                                    ^ a record: step (record - space_base) / 8
 *
 * Addresses are not memory: chunks that are not taken can be neither read nor written, and count
 * nowhere but in `ulimit -v`. Under such a limit, the range is at most half of it. The range is
 * reserved when the first chunk is taken.
 *
 * Ownership: a chunk is the taker's until it is returned. Threads: any.
 */
#ifndef CACHE_STORE_SPACE_H
#define CACHE_STORE_SPACE_H

#include <stddef.h>
#include <stdint.h>

enum { SPACE_STEP_BYTES = 8, SPACE_CHUNK_BYTES = 4 << 20 };

extern char *space_base;

/* Zeroed. NULL: no memory, or no addresses are left. */
void *space_take_chunk(void);
void space_return_chunk(void *chunk);

/* Step 0 is no record, because a chunk begins with a header. */
static inline void *space_record(uint32_t step)
{
    return step == 0 ? NULL : space_base + (size_t)step * SPACE_STEP_BYTES;
}

/* NULL has step 0. */
static inline uint32_t space_step(const void *record)
{
    return record == NULL
               ? 0
               : (uint32_t)((size_t)((const char *)record - space_base) / SPACE_STEP_BYTES);
}

/*
 * SPACE_REF(pod) makes the type of references to a struct pod, and its two functions:
 *
 *     | struct pod_ref ref = pod_ref(pod); // also of NULL
 *     | struct pod *pod = pod_at(ref);
 */
#define SPACE_REF(type) \
    struct type##_ref { \
        uint32_t step; \
    }; \
    static inline struct type *type##_at(struct type##_ref ref) \
    { \
        return (struct type *)space_record(ref.step); \
    } \
    static inline struct type##_ref type##_ref(const struct type *record) \
    { \
        return (struct type##_ref){space_step(record)}; \
    } \
    struct type##_ref

#endif
