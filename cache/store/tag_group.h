/*
 * tag_group: which of 16 tags equal one, compared at once: a lookup then has one branch for 16
 * slots, which is nearly always predicted. Slot by slot, a table that is three quarters full costs
 * a wrong prediction in most lookups, which takes longer than the rest.
 */
#ifndef CACHE_STORE_TAG_GROUP_H
#define CACHE_STORE_TAG_GROUP_H

#include <stdint.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { TAG_GROUP = 16 };

/* Bit i: tags[i] is the tag. tag_group_find without vectors, for other processors, and for the test
 * that compares both. */
static inline uint32_t tag_group_find_plain(const uint8_t tags[TAG_GROUP], uint8_t tag)
{
    uint32_t bits = 0;

    for (unsigned i = 0; i < TAG_GROUP; i++)
        bits |= (uint32_t)(tags[i] == tag) << i;
    return bits;
}

static inline uint32_t tag_group_find(const uint8_t tags[TAG_GROUP], uint8_t tag)
{
#ifdef __SSE2__
    __m128i group = _mm_loadu_si128((const __m128i *)(const void *)tags);

    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(group, _mm_set1_epi8((char)tag)));
#else
    return tag_group_find_plain(tags, tag);
#endif
}

#endif
