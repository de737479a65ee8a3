#include "cache/json/json_blocks.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

/* ---- plain: byte by byte, as the header says it ---- */

static bool is_odd(char c)
{
    return (unsigned char)(c - 0x20) >= 0x60 || c == '\\';
}

static bool opens(const char *p)
{
    return p[0] == '"' && p[-1] == ',';
}

static bool closes(const char *p)
{
    return p[0] == '"' && p[-1] != ',';
}

static bool read_plain(const char *p, size_t count, struct json_blocks *out)
{
    bool is_good = true, has_quote = true;

    out->strings = 0;
    for (int i = -JSON_BLOCK_BEFORE; i < 0; i++)
        is_good = is_good && !is_odd(p[i]);
    for (size_t block = 0; block < count; block++, p += JSON_BLOCK) {
        is_good = is_good && (block % 2 != 0 || has_quote); /* in the two blocks before */
        has_quote = has_quote && block % 2 != 0;
        out->opening[block] = 0;
        for (int i = 0; i < JSON_BLOCK; i++) {
            bool is_adjacent = p[i] == '"' && p[i - 1] == '"';
            is_good = is_good && !is_odd(p[i]) && !is_adjacent;
            is_good = is_good && opens(p + i) == closes(p + i - 2);
            has_quote = has_quote || p[i] == '"';
            out->opening[block] |= (uint64_t)opens(p + i) << i;
            out->strings += opens(p + i);
        }
    }
    return is_good && has_quote;
}

json_blocks_reader *json_blocks_read = read_plain;
json_blocks_reader *json_blocks_readers[JSON_BLOCKS_READERS_MAX + 1] = {read_plain};

/* ---- joining ---- */

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Where strings open in some blocks, in bytes from the first. */
struct places {
    size_t count;
    uint16_t at[JSON_BLOCKS_MAX * 16 + 4];
};

/* Of each block, four are written in any case: most blocks have about three, and whether it is one
 * more or less cannot be predicted. */
ALWAYS_INLINE void find_places(const struct json_blocks *blocks, size_t count, struct places *out)
{
    const uint64_t some = UINT64_C(1) << 63; /* __builtin_ctzll needs a bit */
    size_t n = 0;

    for (size_t i = 0, block = 0; i < count; i++, block += JSON_BLOCK) {
        uint64_t opening = blocks->opening[i];
        for (int j = 0; j < 4; j++, opening &= opening - 1) {
            out->at[n] = (uint16_t)(block + (size_t)__builtin_ctzll(opening | some));
            n += opening != 0;
        }
        for (; opening != 0; opening &= opening - 1)
            out->at[n++] = (uint16_t)(block + (size_t)__builtin_ctzll(opening));
    }
    out->count = n;
}

/* Copies at least `length` bytes: JSON_JOIN_ROOM at a time. Returns the end of the copy. */
ALWAYS_INLINE char *copy_roughly(char *to, const char *from, size_t length)
{
    for (size_t i = 0; i < length; i += JSON_JOIN_ROOM)
        memcpy(to + i, from + i, JSON_JOIN_ROOM);
    return to + length;
}

/* Each string ends two bytes before the next opens. */
ALWAYS_INLINE bool join_places(const char **open, const char *p, const struct places *places,
                               struct json_join *join)
{
    const struct slice between = join->between;
    const char *begin = *open;
    char *to = join->to, *end = join->end;
    size_t i = 0;

    for (; i < places->count; i++) {
        const char *next = p + places->at[i];
        size_t length = (size_t)(next - 1 - begin);
        if ((size_t)(end - to) < between.len + length + JSON_JOIN_ROOM)
            break;
        to = copy_roughly(to, between.ptr, between.len);
        to = copy_roughly(to, begin, length);
        begin = next;
    }
    *open = begin;
    join->to = to;
    return i == places->count;
}

ALWAYS_INLINE bool join_blocks(const char **open, const char *p, const struct json_blocks *blocks,
                               size_t count, struct json_join *join)
{
    struct places places;

    find_places(blocks, count, &places);
    return join_places(open, p, &places, join);
}

static bool join_plain(const char **open, const char *p, const struct json_blocks *blocks,
                       size_t count, struct json_join *join)
{
    return join_blocks(open, p, blocks, count, join);
}

json_blocks_joiner *json_blocks_join = join_plain;
json_blocks_joiner *json_blocks_joiners[JSON_BLOCKS_JOINERS_MAX + 1] = {join_plain};

#ifdef __x86_64__

/* ---- by vectors: 64 bytes from JSON_BLOCK_BEFORE bytes before the block on ---- */

static const size_t two_blocks = (size_t)2 * JSON_BLOCK;

/* Bit i is byte i of the 64. */
struct marks {
    uint64_t quotes, commas;
};

/* Notes in *bad what is wrong: in the bits of the 3 bytes before the block, it means nothing. */
ALWAYS_INLINE uint64_t find_opening(struct marks marks, uint64_t *bad)
{
    uint64_t opening = marks.quotes & marks.commas << 1, closing = marks.quotes ^ opening;

    *bad |= (opening ^ closing << 2) | (marks.quotes & marks.quotes << 1);
    return opening >> JSON_BLOCK_BEFORE;
}

/* Adds two blocks to what was found. Returns what is wrong with them; 0: nothing. */
ALWAYS_INLINE uint64_t add_blocks(struct marks a, struct marks b, size_t at,
                                  struct json_blocks *out)
{
    uint64_t bad = 0;

    out->opening[at] = find_opening(a, &bad);
    out->opening[at + 1] = find_opening(b, &bad);
    out->strings += (unsigned)__builtin_popcountll(out->opening[at]) +
                    (unsigned)__builtin_popcountll(out->opening[at + 1]);
    bool has_quote = (a.quotes | b.quotes) >> JSON_BLOCK_BEFORE != 0;
    return bad >> JSON_BLOCK_BEFORE | !has_quote;
}

/* In all versions: `lowest` are the lowest bytes as signed numbers, so that control bytes and bytes
 * that are not ASCII are below a space. movemask reads the sign bits. */

/* Of 16 bytes, at bit `at` of the 64. */
ALWAYS_INLINE void mark_16(const char *p, unsigned at, struct marks *marks, __m128i *odd)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i is_quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
    __m128i is_comma = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(','));
    __m128i is_backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
    __m128i is_low = _mm_cmplt_epi8(bytes, _mm_set1_epi8(' ')); /* SSE2 has no signed minimum */

    *odd = _mm_or_si128(*odd, _mm_or_si128(is_backslash, is_low));
    marks->quotes |= (uint64_t)(uint32_t)_mm_movemask_epi8(is_quote) << at;
    marks->commas |= (uint64_t)(uint32_t)_mm_movemask_epi8(is_comma) << at;
}

static bool read_sse2(const char *p, size_t count, struct json_blocks *out)
{
    __m128i odd = _mm_setzero_si128();
    uint64_t bad = 0;

    out->strings = 0;
    p -= JSON_BLOCK_BEFORE;
    for (size_t block = 0; block < count; block += 2) {
        struct marks two[2] = {{0, 0}, {0, 0}};
        for (unsigned i = 0; i < 2; i++, p += JSON_BLOCK)
            for (unsigned at = 0; at < 64; at += 16)
                mark_16(p + at, at, &two[i], &odd);
        bad |= add_blocks(two[0], two[1], block, out);
    }
    return bad == 0 && _mm_movemask_epi8(odd) == 0;
}

#define AVX2 __attribute__((target("avx2,bmi,popcnt")))

struct odd_32 {
    __m256i lowest, backslashes;
};

AVX2 ALWAYS_INLINE uint64_t movemask_64(__m256i low, __m256i high)
{
    return (uint32_t)_mm256_movemask_epi8(low) | (uint64_t)(uint32_t)_mm256_movemask_epi8(high)
                                                     << 32;
}

AVX2 ALWAYS_INLINE struct marks mark_64(const char *p, struct odd_32 *odd)
{
    const __m256i quote = _mm256_set1_epi8('"'), comma = _mm256_set1_epi8(',');
    const __m256i backslash = _mm256_set1_epi8('\\');
    __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)p);
    __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(p + 32));

    odd->lowest = _mm256_min_epi8(odd->lowest, _mm256_min_epi8(a, b));
    odd->backslashes =
        _mm256_or_si256(odd->backslashes, _mm256_or_si256(_mm256_cmpeq_epi8(a, backslash),
                                                          _mm256_cmpeq_epi8(b, backslash)));
    return (struct marks){
        movemask_64(_mm256_cmpeq_epi8(a, quote), _mm256_cmpeq_epi8(b, quote)),
        movemask_64(_mm256_cmpeq_epi8(a, comma), _mm256_cmpeq_epi8(b, comma)),
    };
}

AVX2 static bool read_avx2(const char *p, size_t count, struct json_blocks *out)
{
    struct odd_32 odd = {_mm256_set1_epi8(' '), _mm256_setzero_si256()};
    uint64_t bad = 0;

    out->strings = 0;
    p -= JSON_BLOCK_BEFORE;
    for (size_t block = 0; block < count; block += 2, p += two_blocks) {
        struct marks a = mark_64(p, &odd), b = mark_64(p + JSON_BLOCK, &odd);
        bad |= add_blocks(a, b, block, out);
    }
    __m256i is_low = _mm256_cmpgt_epi8(_mm256_set1_epi8(' '), odd.lowest);
    return bad == 0 && _mm256_movemask_epi8(_mm256_or_si256(odd.backslashes, is_low)) == 0;
}

AVX2 static bool join_avx2(const char **open, const char *p, const struct json_blocks *blocks,
                           size_t count, struct json_join *join)
{
    return join_blocks(open, p, blocks, count, join);
}

#define AVX512 __attribute__((target("avx512bw,avx512f,bmi,popcnt")))

struct odd_64 {
    __m512i lowest;
    uint64_t backslashes;
};

AVX512 ALWAYS_INLINE struct marks mark_64_at_once(const char *p, struct odd_64 *odd)
{
    __m512i bytes = _mm512_loadu_si512(p);

    odd->lowest = _mm512_min_epi8(odd->lowest, bytes);
    odd->backslashes |= _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('\\'));
    return (struct marks){_mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('"')),
                          _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(','))};
}

AVX512 static bool read_avx512(const char *p, size_t count, struct json_blocks *out)
{
    struct odd_64 odd = {_mm512_set1_epi8(' '), 0};
    uint64_t bad = 0;

    out->strings = 0;
    p -= JSON_BLOCK_BEFORE;
    for (size_t block = 0; block < count; block += 2, p += two_blocks) {
        struct marks a = mark_64_at_once(p, &odd), b = mark_64_at_once(p + JSON_BLOCK, &odd);
        bad |= add_blocks(a, b, block, out);
    }
    return (bad | odd.backslashes | _mm512_cmplt_epi8_mask(odd.lowest, _mm512_set1_epi8(' '))) == 0;
}

/* The first processors with AVX-512 run slower for a while after using it; those with VBMI2, which
 * came after them, do not. */
__attribute__((constructor)) static void choose(void)
{
    json_blocks_reader **next = &json_blocks_readers[1];

    __builtin_cpu_init();
    *next++ = read_sse2;
    bool has_bits = __builtin_cpu_supports("bmi") && __builtin_cpu_supports("popcnt");
    if (has_bits && __builtin_cpu_supports("avx2")) {
        *next++ = read_avx2;
        json_blocks_joiners[1] = json_blocks_join = join_avx2;
    }
    if (has_bits && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi2"))
        *next++ = read_avx512;
    json_blocks_read = next[-1];
}
#endif
