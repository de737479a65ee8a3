#include "cache/json/json_blocks.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

static bool is_odd(char c)
{
    return (unsigned char)(c - 0x20) >= 0x60 || c == '\\';
}

static void read_plain(const char *p, size_t count, struct json_block *out)
{
    for (size_t block = 0; block < count; block++, p += JSON_BLOCK) {
        out[block] = (struct json_block){.quotes = 0};
        for (unsigned i = 0; i < JSON_BLOCK; i++) {
            out[block].quotes |= (uint64_t)(p[i] == '"') << i;
            out[block].commas |= (uint64_t)(p[i] == ',') << i;
            out[block].is_odd |= is_odd(p[i]);
        }
    }
}

json_blocks_reader *json_blocks_read = read_plain;
json_blocks_reader *json_blocks_readers[JSON_BLOCKS_READERS_MAX + 1] = {read_plain};

#ifdef __x86_64__
/* movemask reads the sign bits; those of the bytes themselves mark bytes that are not ASCII. */

static void read_sse2(const char *p, size_t count, struct json_block *out)
{
    const __m128i quote = _mm_set1_epi8('"'), comma = _mm_set1_epi8(',');
    const __m128i backslash = _mm_set1_epi8('\\'), last_control = _mm_set1_epi8(0x1f);

    for (size_t block = 0; block < count; block++) {
        uint64_t quotes = 0, commas = 0;
        __m128i odd = _mm_setzero_si128();
        for (unsigned i = 0; i < JSON_BLOCK; i += 16, p += 16) {
            __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
            __m128i is_control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, last_control), bytes);
            odd = _mm_or_si128(odd, _mm_or_si128(bytes, is_control));
            odd = _mm_or_si128(odd, _mm_cmpeq_epi8(bytes, backslash));
            quotes |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, quote)) << i;
            commas |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, comma)) << i;
        }
        out[block] = (struct json_block){quotes, commas, _mm_movemask_epi8(odd) != 0};
    }
}

__attribute__((target("avx2"))) static void read_avx2(const char *p, size_t count,
                                                      struct json_block *out)
{
    const __m256i quote = _mm256_set1_epi8('"'), comma = _mm256_set1_epi8(',');
    const __m256i backslash = _mm256_set1_epi8('\\'), last_control = _mm256_set1_epi8(0x1f);

    for (size_t block = 0; block < count; block++) {
        uint64_t quotes = 0, commas = 0;
        __m256i odd = _mm256_setzero_si256();
        for (unsigned i = 0; i < JSON_BLOCK; i += 32, p += 32) {
            __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)p);
            __m256i is_control = _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, last_control), bytes);
            odd = _mm256_or_si256(odd, _mm256_or_si256(bytes, is_control));
            odd = _mm256_or_si256(odd, _mm256_cmpeq_epi8(bytes, backslash));
            quotes |= (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, quote))
                      << i;
            commas |= (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, comma))
                      << i;
        }
        out[block] = (struct json_block){quotes, commas, _mm256_movemask_epi8(odd) != 0};
    }
}

__attribute__((constructor)) static void choose(void)
{
    __builtin_cpu_init();
    json_blocks_readers[1] = json_blocks_read = read_sse2;
    if (__builtin_cpu_supports("avx2"))
        json_blocks_readers[2] = json_blocks_read = read_avx2;
}
#endif
