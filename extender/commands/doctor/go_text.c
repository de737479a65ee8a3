/* Texts as kube-scheduler, a Go program, reads them: numbers, durations, names, URLs. */
#include "extender/commands/doctor/scheduler_file.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <stdlib.h>

enum { NUMBER_BYTES_MAX = 64, NAME_BYTES_MAX = 63, DOMAIN_BYTES_MAX = 253 };

/* ---- numbers and durations ---- */

bool go_number(double *out, struct slice text)
{
    char copy[NUMBER_BYTES_MAX], *end = NULL;

    if (text.len == 0 || text.len >= sizeof copy || strchr("+-.0123456789", text.ptr[0]) == NULL ||
        memchr(text.ptr, '\0', text.len) != NULL)
        return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    *out = strtod(copy, &end);
    return *end == '\0';
}

/* How many milliseconds a unit at the beginning of the text has; 0: there is no unit. */
static double unit_ms(struct slice text, size_t *length)
{
    static const struct {
        const char *text;
        double ms;
    } units[] = {{"ns", 1e-6}, {"us", 1e-3}, {"\xC2\xB5s", 1e-3}, {"\xCE\xBCs", 1e-3},
                 {"ms", 1},    {"s", 1e3},   {"m", 60e3},         {"h", 3600e3}};

    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        *length = strlen(units[i].text);
        if (text.len >= *length && memcmp(text.ptr, units[i].text, *length) == 0)
            return units[i].ms;
    }
    return 0;
}

/* Takes digits with at most one point from the beginning. False if there is no digit. */
static bool take_decimal(double *out, struct slice *text)
{
    size_t len = 0, digits = 0, points = 0;

    while (len < text->len && points <= 1 &&
           ((text->ptr[len] >= '0' && text->ptr[len] <= '9') || text->ptr[len] == '.')) {
        points += text->ptr[len] == '.';
        digits += text->ptr[len] != '.';
        len++;
    }
    if (digits == 0 || points > 1 || !go_number(out, (struct slice){text->ptr, len}))
        return false;
    *text = (struct slice){text->ptr + len, text->len - len};
    return true;
}

bool go_duration_ms(int64_t *out, struct slice text)
{
    double total = 0, number, sign = 1;

    if (text.len != 0 && (text.ptr[0] == '-' || text.ptr[0] == '+')) {
        sign = text.ptr[0] == '-' ? -1 : 1;
        text = (struct slice){text.ptr + 1, text.len - 1};
    }
    *out = 0;
    if (slice_equal(text, SLICE("0")))
        return true;
    if (text.len == 0)
        return false;
    while (text.len != 0) {
        size_t length;
        if (!take_decimal(&number, &text))
            return false;
        double ms = unit_ms(text, &length);
        if (ms == 0)
            return false;
        total += number * ms;
        text = (struct slice){text.ptr + length, text.len - length};
    }
    if (total > 9.2e12) /* of nanoseconds in an int64_t */
        return false;
    *out = (int64_t)(sign * total);
    return true;
}

/* ---- names ---- */

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Letters, digits, and in between also those of `inner`. */
static bool is_word(struct slice text, const char *inner, size_t most)
{
    if (text.len == 0 || text.len > most || !is_letter_or_digit(text.ptr[0]) ||
        !is_letter_or_digit(text.ptr[text.len - 1]))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (!is_letter_or_digit(text.ptr[i]) &&
            (text.ptr[i] == '\0' || strchr(inner, text.ptr[i]) == NULL))
            return false;
    return true;
}

bool go_is_extended_resource(struct slice name)
{
    static const char quota[] = "requests."; /* is put before it, and has to fit */
    struct slice rest = name, domain = slice_cut(&rest, '/');

    if (rest.ptr == NULL || slice_has(name, SLICE("kubernetes.io/")) ||
        (name.len >= sizeof quota - 1 && memcmp(name.ptr, quota, sizeof quota - 1) == 0))
        return false;
    for (size_t i = 0; i < domain.len; i++)
        if (domain.ptr[i] >= 'A' && domain.ptr[i] <= 'Z')
            return false;
    return is_word(domain, "-.", DOMAIN_BYTES_MAX - (sizeof quota - 1)) &&
           is_word(rest, "-._", NAME_BYTES_MAX);
}

/* ---- URLs ---- */

/* A part of the URL, copied into the arena; {NULL, 0} without memory. */
static struct slice url_part(CURLU *url, CURLUPart part, unsigned flags, struct arena *arena)
{
    char *text = NULL;
    struct slice copy = SLICE("");

    if (curl_url_get(url, part, &text, flags) == CURLUE_OK)
        copy = arena_copy(arena, slice_of(text));
    curl_free(text);
    return copy;
}

static bool split(struct url *out, CURLU *url, struct arena *arena)
{
    double port = 0;

    out->scheme = url_part(url, CURLUPART_SCHEME, 0, arena);
    out->host = url_part(url, CURLUPART_HOST, 0, arena);
    out->path = url_part(url, CURLUPART_PATH, 0, arena);
    (void)go_number(&port, url_part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT, arena));
    out->port = (unsigned)port;
    while (out->path.len != 0 && out->path.ptr[out->path.len - 1] == '/')
        out->path.len--;
    if (out->host.len > 2 && out->host.ptr[0] == '[')
        out->host = (struct slice){out->host.ptr + 1, out->host.len - 2};
    return out->host.len != 0 &&
           (slice_equal(out->scheme, SLICE("http")) || slice_equal(out->scheme, SLICE("https")));
}

bool go_url(struct url *out, struct slice text, struct arena *arena)
{
    struct slice copy = arena_copy(arena, text);
    CURLU *url = curl_url();
    bool ok = copy.ptr != NULL && url != NULL && memchr(copy.ptr, '\0', copy.len) == NULL &&
              curl_url_set(url, CURLUPART_URL, copy.ptr, 0) == CURLUE_OK && split(out, url, arena);

    curl_url_cleanup(url);
    return ok;
}

bool go_is_loopback(struct slice host)
{
    struct in_addr v4;
    struct in6_addr v6;
    char text[64];

    if (host.len >= sizeof text)
        return false;
    memcpy(text, host.ptr, host.len);
    text[host.len] = '\0';
    if (inet_pton(AF_INET, text, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, text, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6);
    return slice_equal(host, SLICE("localhost"));
}
