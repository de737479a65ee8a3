#include "cache/json/json_skip.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "cache/json/json_text.h"

/* ---- what the bytes of a block are, as bits: with AVX2, SSE2 or plain C ---- */

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

/* ---- what a block takes over from the one before ---- */

/* Each is 0 or 1, and says something of the next block: its first byte, or its first token, ... */
struct carry {
    uint64_t escaped, scalar;    /* ... is escaped; continues a scalar */
    uint64_t comma, colon, open; /* ... is behind such a token */
    uint64_t in_key, behind_key; /* ... is inside, is behind a string that may be a key */
};

struct skip {
    struct carry carry;
    uint64_t in_string; /* all bits or none: the last block ended inside a string */
    uint64_t path;      /* a bit for each level, the innermost lowest: set for an object */
    unsigned depth, room;
};

/* Each mark, moved behind the run of set bits of `over` that begins at it. */
static inline uint64_t behind_run(uint64_t marks, uint64_t over, uint64_t *carry)
{
    unsigned long long sum;

    *carry |= __builtin_uaddll_overflow(marks, over, &sum);
    return sum & ~over;
}

/* The next token behind each of `tokens`. */
static inline uint64_t next_token(uint64_t tokens, uint64_t space, uint64_t *carry)
{
    uint64_t marks = tokens << 1 | *carry;

    *carry = tokens >> 63;
    return behind_run(marks, space, carry);
}

/* The closing quote of each string that begins at `opening`. */
static inline uint64_t closing_quote(uint64_t opening, uint64_t in_string, uint64_t *carry)
{
    uint64_t marks = opening | *carry;

    *carry = 0;
    return behind_run(marks, in_string, carry);
}

/* The bytes behind a backslash that is not itself escaped: in a run of backslashes, every other
 * one. Where a run ends follows from an addition; with the bit where it begins, which of the two.
 */
static inline uint64_t find_escaped(uint64_t backslashes, uint64_t *carry)
{
    const uint64_t even = UINT64_C(0x5555555555555555);
    uint64_t escaped = *carry;
    unsigned long long ends;

    *carry = 0;
    if (backslashes == 0)
        return escaped;
    backslashes &= ~escaped;
    uint64_t behind = backslashes << 1 | escaped;
    uint64_t odd_starts = backslashes & ~even & ~behind;
    *carry = __builtin_uaddll_overflow(odd_starts, backslashes, &ends);
    return (even ^ ends << 1) & behind;
}

/* ---- tokens ---- */

/* What is inside strings is no token. */
struct tokens {
    uint64_t in_string; /* with the opening quotes */
    uint64_t opening, commas, colons, open, close, curly, space;
    uint64_t scalars;          /* the first byte of each */
    uint64_t control, escapes; /* inside strings: escapes other than of quotes, backslashes */
};

static inline struct tokens find_tokens(struct skip *skip, const struct bits *bits,
                                        running_xor * xor)
{
    struct carry *carry = &skip->carry;
    uint64_t escaped = find_escaped(bits->backslashes, &carry->escaped);
    uint64_t quotes = bits->quotes & ~escaped;
    uint64_t in_string = xor(quotes) ^ skip->in_string;
    uint64_t outside = ~in_string;
    struct tokens tokens = {.in_string = in_string,
                            .opening = quotes & in_string,
                            .commas = bits->commas & outside,
                            .colons = bits->colons & outside,
                            .open = bits->open & outside,
                            .close = bits->close & outside,
                            .curly = bits->curly,
                            .space = bits->space & outside,
                            .control = bits->control & in_string};
    uint64_t scalar = outside & ~(quotes | tokens.commas | tokens.colons | tokens.open |
                                  tokens.close | tokens.space);
    uint64_t behind_scalar = scalar << 1 | carry->scalar;

    skip->in_string = 0 - (in_string >> 63);
    carry->scalar = scalar >> 63;
    tokens.scalars = scalar & ~behind_scalar;
    tokens.escapes = escaped & in_string & ~(bits->quotes | bits->backslashes);
    return tokens;
}

/* ---- rules ---- */

/* Tokens that may not be where they are: anywhere, or if the innermost level is of that kind. */
struct faults {
    uint64_t anywhere, in_object, in_array;
};

/*
 * What may stand behind what. A token that is behind no comma, colon or opening bracket is behind
 * the end of a value. A string behind a comma or an opening bracket is a key in an object, and an
 * item in an array: there is a colon behind it, or not.
 */
static inline struct faults check_neighbours(struct carry *carry, const struct tokens *tokens,
                                             uint64_t space)
{
    uint64_t values = tokens->opening | tokens->open | tokens->scalars; /* their first bytes */
    uint64_t by_comma = next_token(tokens->commas, space, &carry->comma);
    uint64_t by_colon = next_token(tokens->colons, space, &carry->colon);
    uint64_t by_open = next_token(tokens->open, space, &carry->open);
    uint64_t keys = tokens->opening & (by_comma | by_open);
    uint64_t key_ends = closing_quote(keys, tokens->in_string, &carry->in_key);
    uint64_t by_key = next_token(key_ends, space, &carry->behind_key);
    uint64_t by_others = by_comma | by_colon | by_open;

    return (struct faults){
        .anywhere = (values & ~by_others) | (tokens->commas & by_others) |
                    (tokens->close & (by_comma | by_colon)) | (tokens->colons & ~by_key) |
                    tokens->control,
        .in_object = (by_key & ~tokens->colons) |
                     ((by_comma | by_open) & ~(tokens->opening | tokens->close)),
        .in_array = by_key & tokens->colons,
    };
}

/* All bits up to this one, which is the only one set. */
static inline uint64_t up_to(uint64_t bit)
{
    return bit | (bit - 1);
}

/* Enters and leaves levels. A bracket that is closed at once changes nothing. Returns the bytes
 * that belong to the value; 0: they do not match, or are too deep. */
static inline uint64_t walk_brackets(struct skip *skip, const struct tokens *tokens,
                                     struct faults *faults)
{
    uint64_t first = skip->depth == 0; /* a bit: the value's own bracket */
    uint64_t same = ~(tokens->curly ^ tokens->curly >> 1);
    uint64_t pairs = tokens->open & tokens->close >> 1 & same & ~first;
    uint64_t brackets = (tokens->open | tokens->close) & ~(pairs | pairs << 1);
    uint64_t before = 0; /* what was checked */

    for (; brackets != 0; brackets &= brackets - 1) {
        uint64_t bit = brackets & -brackets;
        uint64_t is_curly = (tokens->curly & bit) != 0;
        uint64_t wrong = (skip->path & 1) != 0 ? faults->in_object : faults->in_array;
        faults->anywhere |= wrong & up_to(bit) & ~before;
        before = up_to(bit);
        if ((tokens->open & bit) != 0) {
            if (skip->depth++ == skip->room)
                return 0;
            skip->path = skip->path << 1 | is_curly;
            continue;
        }
        if ((skip->path & 1) != is_curly)
            return 0;
        skip->path >>= 1;
        if (--skip->depth == 0)
            return before;
    }
    faults->anywhere |= ((skip->path & 1) != 0 ? faults->in_object : faults->in_array) & ~before;
    return UINT64_MAX;
}

/* A number, true, false or null, and then no other byte of one. */
static bool is_scalar(const char *p, const char *end)
{
    struct json_scan scan = json_text_scalar(p, end);

    if (scan.problem != NULL || scan.at == end)
        return false;
    char c = *scan.at;
    return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static inline bool are_good(const struct tokens *tokens, uint64_t within, const char *p,
                            const char *end)
{
    for (uint64_t left = tokens->scalars & within; left != 0; left &= left - 1)
        if (!is_scalar(p + __builtin_ctzll(left), end))
            return false;
    for (uint64_t left = tokens->escapes & within; left != 0; left &= left - 1)
        if (!json_text_is_escape(p + __builtin_ctzll(left), end))
            return false;
    return true;
}

/* ---- versions ---- */

/* The block at p, behind `end` filled with spaces in `padded`. */
static inline const char *block_at(const char *p, const char *end, char padded[BLOCK])
{
    return end - p >= BLOCK ? p : memcpy(memset(padded, ' ', BLOCK), p, (size_t)(end - p));
}

/* Compiled for each processor, with what its version is made of. */
__attribute__((always_inline)) static inline const char *check_value(const char *p, const char *end,
                                                                     unsigned room,
                                                                     read_block *read,
                                                                     running_xor * xor)
{
    struct skip skip = {.carry.colon = 1, /* as if behind one: a value is expected */
                        .room = (room < JSON_SKIP_LEVELS_MAX ? room : JSON_SKIP_LEVELS_MAX) - 1};
    char padded[BLOCK];

    if (end - p < JSON_SKIP_BYTES_MIN || room < 2) /* one level is left for pairs */
        return NULL;
    for (; p < end; p += BLOCK) {
        struct bits bits = read(block_at(p, end, padded));
        struct tokens tokens = find_tokens(&skip, &bits, xor);
        /* compact text has no white space, and additions less to do */
        struct faults faults = tokens.space == 0
                                   ? check_neighbours(&skip.carry, &tokens, 0)
                                   : check_neighbours(&skip.carry, &tokens, tokens.space);
        uint64_t within = walk_brackets(&skip, &tokens, &faults);
        if (within == 0 || (faults.anywhere & within) != 0 || !are_good(&tokens, within, p, end))
            return NULL;
        if (skip.depth == 0)
            return p + BLOCK - __builtin_clzll(within);
    }
    return NULL;
}

/* Brackets need no kinds here: they are known to match. */
__attribute__((always_inline)) static inline const char *find_end_of(const char *p, const char *end,
                                                                     read_block *read,
                                                                     running_xor * xor)
{
    uint64_t escaped = 0, in_string = 0;
    int depth = 0;
    char padded[BLOCK];

    for (; p < end; p += BLOCK) {
        struct bits bits = read(block_at(p, end, padded));
        uint64_t quotes = bits.quotes & ~find_escaped(bits.backslashes, &escaped);
        in_string ^= xor(quotes);
        uint64_t open = bits.open & ~in_string, close = bits.close & ~in_string;
        in_string = 0 - (in_string >> 63);
        int after = depth + __builtin_popcountll(open) - __builtin_popcountll(close);
        int closed = 0;
        if (depth <= __builtin_popcountll(close)) /* else it ends behind this block */
            for (; close != 0; close &= close - 1) {
                uint64_t bit = close & -close;
                if (depth + __builtin_popcountll(open & (bit - 1)) == ++closed)
                    return p + __builtin_ctzll(bit) + 1;
            }
        depth = after;
    }
    return NULL;
}

/* A version: its functions, compiled for the target. */
#define SKIPPER(name_, target_, read_, xor_) \
    __attribute__((target_)) static const char *check_##name_(const char *p, const char *end, \
                                                              unsigned room) \
    { \
        return check_value(p, end, room, read_, xor_); \
    } \
    __attribute__((target_)) static const char *find_end_##name_(const char *p, const char *end) \
    { \
        return find_end_of(p, end, read_, xor_); \
    } \
    static const struct json_skipper skip_##name_ = {check_##name_, find_end_##name_}
#define EVERY_PROCESSOR /* no target */

SKIPPER(plain, EVERY_PROCESSOR, read_plain, xor_plain);

const struct json_skipper *json_skip;
const struct json_skipper *json_skippers[JSON_SKIPPERS_MAX + 1] = {&skip_plain};

#ifdef __x86_64__
SKIPPER(sse2, EVERY_PROCESSOR, read_sse2, xor_plain);
SKIPPER(avx2, AVX2_TARGET, read_avx2, xor_avx2);

__attribute__((constructor)) static void choose(void)
{
    __builtin_cpu_init();
    json_skippers[1] = json_skip = &skip_sse2;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
        __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("popcnt"))
        json_skippers[2] = json_skip = &skip_avx2;
}
#endif
