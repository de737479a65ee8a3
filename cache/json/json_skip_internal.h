/*
 * json_skip_internal: what the bytes of a block of 64 are, as bits, with AVX2, SSE2 or plain C.
 * Inline, because each version of json_skip.c is compiled with its own. Only json_skip.c includes
 * it. Threads: any.
 */
#ifndef CACHE_JSON_JSON_SKIP_INTERNAL_H
#define CACHE_JSON_JSON_SKIP_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { BLOCK = 64 };

/* Which bytes of a block are what, inside strings too. Bit i is byte i. */
struct bits {
    uint64_t quotes, backslashes, commas, colons;
    uint64_t open, close; /* of both kinds */
    uint64_t curly;       /* among the brackets; set or not for others */
    uint64_t space;       /* white space */
    uint64_t control;     /* below 0x20, so with some of the white space */
};

/* What a version is made of; running_xor: bit i says whether the bits up to i are odd in number. */
typedef struct bits read_block(const char *p);
typedef uint64_t running_xor(uint64_t bits);

/* '[' and '{', and ']' and '}', differ in this bit. */
enum { CURLY = 0x20, OPEN = '{', CLOSE = '}' };

static inline struct bits read_plain(const char *p)
{
    struct bits bits = {0};

    for (unsigned i = 0; i < BLOCK; i++) {
        char c = p[i];
        bool is_line = c == '\n' || c == '\r' || c == '\t';
        bits.quotes |= (uint64_t)(c == '"') << i;
        bits.backslashes |= (uint64_t)(c == '\\') << i;
        bits.commas |= (uint64_t)(c == ',') << i;
        bits.colons |= (uint64_t)(c == ':') << i;
        bits.open |= (uint64_t)(c == '[' || c == '{') << i;
        bits.close |= (uint64_t)(c == ']' || c == '}') << i;
        bits.curly |= (uint64_t)((c & CURLY) != 0) << i;
        bits.space |= (uint64_t)(c == ' ' || is_line) << i;
        bits.control |= (uint64_t)((unsigned char)c < 0x20) << i;
    }
    return bits;
}

static inline uint64_t xor_plain(uint64_t bits)
{
    for (unsigned shift = 1; shift < 64; shift *= 2)
        bits ^= bits << shift;
    return bits;
}

#ifdef __x86_64__

/* (c | CURLY) is '{' for "[{", and '}' for "]}". White space: see read_avx2. */
static inline struct bits read_sse2(const char *p)
{
    struct bits bits = {0};

    for (unsigned i = 0; i < BLOCK; i += 16, p += 16) {
        __m128i c = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i folded = _mm_or_si128(c, _mm_set1_epi8(CURLY));
        __m128i space = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(c, _mm_set1_epi8(' ')),
                                                  _mm_cmpeq_epi8(c, _mm_set1_epi8('\n'))),
                                     _mm_or_si128(_mm_cmpeq_epi8(c, _mm_set1_epi8('\r')),
                                                  _mm_cmpeq_epi8(c, _mm_set1_epi8('\t'))));
#define PUT(member_, vector_) bits.member_ |= (uint64_t)(uint32_t)_mm_movemask_epi8(vector_) << i
        PUT(quotes, _mm_cmpeq_epi8(c, _mm_set1_epi8('"')));
        PUT(backslashes, _mm_cmpeq_epi8(c, _mm_set1_epi8('\\')));
        PUT(commas, _mm_cmpeq_epi8(c, _mm_set1_epi8(',')));
        PUT(colons, _mm_cmpeq_epi8(c, _mm_set1_epi8(':')));
        PUT(open, _mm_cmpeq_epi8(folded, _mm_set1_epi8(OPEN)));
        PUT(close, _mm_cmpeq_epi8(folded, _mm_set1_epi8(CLOSE)));
        PUT(curly, _mm_slli_epi16(c, 2)); /* that bit becomes the sign bit */
        PUT(space, space);
        PUT(control, _mm_cmpeq_epi8(_mm_min_epu8(c, _mm_set1_epi8(0x1f)), c));
#undef PUT
    }
    return bits;
}

#define AVX2_TARGET target("avx2,bmi,pclmul,popcnt")
#define AVX2        __attribute__((AVX2_TARGET))

/* A shuffle looks each byte's low four bits up in a table: white space is what finds itself. A byte
 * over 0x7f finds 0, so NOT_SPACE is found by no byte that equals it. */
enum { NOT_SPACE = -1 };

AVX2 static inline struct bits read_avx2(const char *p)
{
    const __m256i spaces = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        ' ', NOT_SPACE, NOT_SPACE, NOT_SPACE, NOT_SPACE, NOT_SPACE, NOT_SPACE, NOT_SPACE, NOT_SPACE,
        '\t', '\n', NOT_SPACE, NOT_SPACE, '\r', NOT_SPACE, NOT_SPACE));
    struct bits bits = {0};

    for (unsigned i = 0; i < BLOCK; i += 32, p += 32) {
        __m256i c = _mm256_loadu_si256((const __m256i *)(const void *)p);
        __m256i folded = _mm256_or_si256(c, _mm256_set1_epi8(CURLY));
#define PUT(member_, vector_) bits.member_ |= (uint64_t)(uint32_t)_mm256_movemask_epi8(vector_) << i
        PUT(quotes, _mm256_cmpeq_epi8(c, _mm256_set1_epi8('"')));
        PUT(backslashes, _mm256_cmpeq_epi8(c, _mm256_set1_epi8('\\')));
        PUT(commas, _mm256_cmpeq_epi8(c, _mm256_set1_epi8(',')));
        PUT(colons, _mm256_cmpeq_epi8(c, _mm256_set1_epi8(':')));
        PUT(open, _mm256_cmpeq_epi8(folded, _mm256_set1_epi8(OPEN)));
        PUT(close, _mm256_cmpeq_epi8(folded, _mm256_set1_epi8(CLOSE)));
        PUT(curly, _mm256_slli_epi16(c, 2));
        PUT(space, _mm256_cmpeq_epi8(_mm256_shuffle_epi8(spaces, c), c));
        PUT(control, _mm256_cmpeq_epi8(_mm256_min_epu8(c, _mm256_set1_epi8(0x1f)), c));
#undef PUT
    }
    _mm256_zeroupper(); /* else code with SSE2, as most of ours, is slow from here on */
    return bits;
}

/* A product without carries by all ones. */
AVX2 static inline uint64_t xor_avx2(uint64_t bits)
{
    __m128i product = _mm_clmulepi64_si128(_mm_set_epi64x(0, (int64_t)bits), _mm_set1_epi8(-1), 0);
    return (uint64_t)_mm_cvtsi128_si64(product);
}

#endif

#endif
