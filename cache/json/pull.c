#include "cache/json/pull.h"

#include <errno.h>
#include <stdlib.h>

void pull_init(struct pull *json, struct slice text)
{
    json->start = json->at = text.ptr == NULL ? "" : text.ptr;
    json->end = json->start + text.len;
    json->problem = NULL;
    json->depth = 0;
    json->is_first = true;
    json->is_checked = false;
    json->is_truncated = false;
    json->path[0] = '\0';
}

void pull_init_checked(struct pull *json, struct slice text)
{
    pull_init(json, text);
    json->is_checked = true;
}

const char pull_too_big[] = "too big for the memory of one request";

bool pull_problem(struct pull *json, const char *problem)
{
    if (json->problem == NULL)
        json->problem = problem;
    return false;
}

static bool truncated(struct pull *json)
{
    if (json->problem == NULL) {
        json->problem = "unexpected end of the text";
        json->is_truncated = true;
        json->at = json->end;
    }
    return false;
}

/* Uses the result of json_text.h: where the scan stopped, and why. */
static bool advance(struct pull *json, struct json_scan scan)
{
    json->at = scan.at;
    if (scan.problem == NULL)
        return true;
    json->is_truncated = scan.problem == json_text_ended;
    return pull_problem(json, scan.problem);
}

/* The first byte of the next token, not consumed; '\0' at a problem (no token starts with a NUL).
 */
static char next_byte(struct pull *json)
{
    if (json->problem != NULL)
        return '\0';
    json->at = json_text_space(json->at, json->end);
    if (json->at == json->end) {
        (void)truncated(json);
        return '\0';
    }
    return *json->at;
}

bool pull_null(struct pull *json)
{
    if (next_byte(json) != 'n')
        return false;
    return advance(json, json_text_scalar(json->at, json->end));
}

static bool enter(struct pull *json, char open, const char *problem)
{
    char c = next_byte(json);
    if (c != open) {
        if (json->problem == NULL && !pull_null(json))
            (void)pull_problem(json, problem);
        json->is_first = false;
        return false;
    }
    if (json->depth == PULL_DEPTH_MAX)
        return pull_problem(json, json_text_too_deep);
    json->at++;
    json->depth++;
    json->is_first = true;
    return true;
}

bool pull_object(struct pull *json)
{
    return enter(json, '{', "expected an object");
}

bool pull_array(struct pull *json)
{
    return enter(json, '[', "expected an array");
}

/* Moves to the next member or item: past the comma; false at the closing bracket (consumed). */
static bool next_element(struct pull *json, char close, const char *problem)
{
    char c = next_byte(json);
    if (c == '\0' && json->problem != NULL)
        return false;
    if (c == close) {
        json->at++;
        json->depth--;
        json->is_first = false;
        return false;
    }
    if (!json->is_first) {
        if (c != ',')
            return pull_problem(json, problem);
        json->at++;
        c = next_byte(json);
        if (c == close)
            return pull_problem(json, "expected a value after ','");
    }
    json->is_first = false;
    return json->problem == NULL;
}

bool pull_item(struct pull *json)
{
    return next_element(json, ']', "expected ',' or ']'");
}

bool pull_key(struct pull *json, struct slice *key)
{
    unsigned oddities = 0;

    if (!next_element(json, '}', "expected ',' or '}'"))
        return false;
    if (*json->at != '"')
        return pull_problem(json, "expected a key in double quotes");
    const char *begin = json->at + 1;
    if (!advance(json, json_text_string(json->at, json->end, &oddities)))
        return false;
    *key = (struct slice){begin, (size_t)(json->at - 1 - begin)};
    if (oddities != 0 && key->len <= PULL_KEY_MAX)
        *key = (struct slice){json->key, json_text_decode(json->key, *key)};
    if (next_byte(json) != ':')
        return pull_problem(json, "expected ':' after the key");
    json->at++;
    return true;
}

bool pull_raw(struct pull *json, struct slice *extent)
{
    if (next_byte(json) == '\0' && json->problem != NULL)
        return false;
    const char *begin = json->at;
    unsigned room = PULL_DEPTH_MAX - json->depth;
    if (!advance(json, json->is_checked ? json_text_checked_value(json->at, json->end)
                                        : json_text_value(json->at, json->end, room)))
        return false;
    *extent = (struct slice){begin, (size_t)(json->at - begin)};
    json->is_first = false;
    return true;
}

bool pull_skip(struct pull *json)
{
    struct slice ignored;
    return pull_raw(json, &ignored);
}

bool pull_string(struct pull *json, struct arena *arena, struct slice *out)
{
    unsigned oddities = 0;
    char c = next_byte(json);

    if (c == 'n')
        return pull_null(json);
    if (c != '"')
        return pull_problem(json, "expected a string");
    const char *begin = json->at + 1;
    if (!advance(json, json_text_string(json->at, json->end, &oddities)))
        return false;
    *out = (struct slice){begin, (size_t)(json->at - 1 - begin)};
    if (oddities == 0)
        return true;
    char *decoded = arena_alloc(arena, out->len * JSON_DECODED_PER_BYTE);
    if (decoded == NULL)
        return pull_problem(json, pull_too_big);
    *out = (struct slice){decoded, json_text_decode(decoded, *out)};
    return true;
}

bool pull_integer(struct pull *json, int64_t *out)
{
    char digits[24];
    struct slice number;
    char c = next_byte(json);

    if (c == 'n')
        return pull_null(json);
    if (c != '-' && (c < '0' || c > '9'))
        return pull_problem(json, "expected an integer");
    const char *begin = json->at;
    if (!pull_raw(json, &number))
        return false;
    if (number.len >= sizeof digits || memchr(number.ptr, '.', number.len) != NULL ||
        memchr(number.ptr, 'e', number.len) != NULL ||
        memchr(number.ptr, 'E', number.len) != NULL) {
        json->at = begin;
        return pull_problem(json, "expected an integer");
    }
    memcpy(digits, number.ptr, number.len);
    digits[number.len] = '\0';
    errno = 0;
    int64_t value = strtoll(digits, NULL, 10);
    if (errno == ERANGE) {
        json->at = begin;
        return pull_problem(json, "an integer that does not fit 64 bits");
    }
    *out = value;
    return true;
}

bool pull_boolean(struct pull *json, bool *out)
{
    char c = next_byte(json);

    if (c == 'n')
        return pull_null(json);
    if (c != 't' && c != 'f')
        return pull_problem(json, "expected true or false");
    if (!pull_skip(json))
        return false;
    *out = c == 't';
    return true;
}

bool pull_string_array(struct pull *json, struct slice *extent, struct json_strings *found)
{
    if (next_byte(json) != '[')
        return pull_problem(json, "expected an array");
    const char *begin = json->at;
    if (!advance(json, json_text_strings(json->at, json->end, found, NULL)))
        return false;
    *extent = (struct slice){begin, (size_t)(json->at - begin)};
    json->is_first = false;
    return true;
}

bool pull_finish(struct pull *json)
{
    if (json->problem != NULL)
        return false;
    json->at = json_text_space(json->at, json->end);
    if (json->at != json->end)
        return pull_problem(json, "expected the end of the text");
    return true;
}

/* In parts whose count fits a byte, because the compiler makes vectors of bytes of that. */
static size_t count_lines(const char *p, size_t left)
{
    size_t lines = 0;

    while (left != 0) {
        size_t part = left < UINT8_MAX ? left : UINT8_MAX;
        uint8_t count = 0;
        for (size_t i = 0; i < part; i++)
            count = (uint8_t)(count + (p[i] == '\n'));
        lines += count;
        p += part;
        left -= part;
    }
    return lines;
}

struct place place_of(const char *start, const char *at, struct place first)
{
    size_t bytes = (size_t)(at - start);
    const char *line_end = memrchr(start, '\n', bytes);

    if (line_end == NULL)
        return (struct place){first.line, first.column + bytes};
    return (struct place){first.line + count_lines(start, bytes), (size_t)(at - line_end)};
}

int pull_fail(const struct pull *json, const char *what, struct place first, struct error *err)
{
    struct place place = place_of(json->start, json->at, first);

    return error_set(err, ERROR_INVALID, "%s:%zu:%zu: %s%s%s", what, place.line, place.column,
                     json->path, json->path[0] == '\0' ? "" : ": ",
                     json->problem == NULL ? "no problem" : json->problem);
}
