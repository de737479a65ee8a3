/* The answer to --all: a row for each claim. */
#include <string.h>

#include "extender/inquiry/who_internal.h"

enum { LINE_BYTES_MAX = 1 << 20 };

static const char *or_dash(const char *text)
{
    return *text == '\0' ? "-" : text;
}

/* "db-1 and 2 more"; chosen: instead of the first. */
static void put_first(struct buf *line, const json_t *pods, const json_t *chosen)
{
    const json_t *first = chosen == NULL ? json_array_get(pods, 0) : chosen;

    buf_put(line, slice_of(or_dash(value_string(first, "name"))));
    if (json_array_size(pods) > 1)
        buf_printf(line, " and %zu more", json_array_size(pods) - 1);
}

/* "RWOP", as kubectl says. */
static void put_modes(struct buf *line, const json_t *modes)
{
    static const char *const names[][2] = {{"ReadWriteOnce", "RWO"},
                                           {"ReadOnlyMany", "ROX"},
                                           {"ReadWriteMany", "RWX"},
                                           {"ReadWriteOncePod", "RWOP"}};
    json_t *mode;
    size_t i;

    if (json_array_size(modes) == 0)
        buf_put(line, SLICE("-"));
    json_array_foreach (modes, i, mode) {
        const char *name = json_string_value(mode);
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            name = strcmp(name, names[k][0]) == 0 ? names[k][1] : name;
        buf_printf(line, "%s%s", i == 0 ? "" : ",", name);
    }
}

/* The waiter that waits longest for this claim. */
static const json_t *first_waiter(const json_t *waiters)
{
    json_t *waiter;
    size_t i;

    json_array_foreach (waiters, i, waiter)
        if (strcmp(value_string(waiter, "waitsFor"), "Other") != 0)
            return waiter;
    return NULL;
}

/* What it waits for, in a word that kubectl's users know. */
static const char *wait_text(const json_t *waiter)
{
    static const char *const texts[][2] = {
        {"Holder", "its holder"}, {"Detach", "detach (Multi-Attach)"}, {"Claim", "the claim"},
        {"Binding", "a volume"},  {"Reservation", "a reservation"},    {"Lock", "a lock"},
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(value_string(waiter, "waitsFor"), texts[i][0]) == 0)
            return texts[i][1];
    return "-";
}

/* Where the claim is held; or the volume is attached. */
static const char *node_text(const json_t *claim)
{
    const json_t *holder = json_array_get(json_object_get(claim, "heldBy"), 0);
    const json_t *attachment = json_array_get(json_object_get(claim, "attachments"), 0);

    return or_dash(value_string(holder == NULL ? attachment : holder, "node"));
}

static bool add_claim(struct sheet *sheet, const json_t *claim)
{
    const json_t *waiters = json_object_get(claim, "waiting"), *first = first_waiter(waiters);
    struct buf holder, waiter, modes;

    buf_init(&holder, LINE_BYTES_MAX);
    buf_init(&waiter, LINE_BYTES_MAX);
    buf_init(&modes, LINE_BYTES_MAX);
    put_first(&holder, json_object_get(claim, "heldBy"), NULL);
    put_first(&waiter, waiters, first);
    put_modes(&modes, json_object_get(claim, "accessModes"));
    const char *const texts[] = {value_string(claim, "namespace"),
                                 value_string(claim, "name"),
                                 buf_text(&holder),
                                 node_text(claim),
                                 or_dash(value_string(first, "since")),
                                 buf_text(&waiter),
                                 wait_text(first),
                                 buf_text(&modes),
                                 NULL};
    bool ok = texts[2] != NULL && texts[5] != NULL && texts[7] != NULL && sheet_add(sheet, texts);
    buf_dispose(&holder);
    buf_dispose(&waiter);
    buf_dispose(&modes);
    return ok;
}

bool who_print_all(const json_t *claims, const struct sheet_style *style, FILE *file)
{
    static const char *const headings[] = {"NAMESPACE", "CLAIM", "HELD BY", "NODE", "WAITING SINCE",
                                           "WAITING",   "FOR",   "ACCESS",  NULL};
    struct sheet sheet = {NULL, 0};
    json_t *claim;
    size_t i;

    if (json_array_size(claims) == 0)
        return fputs("No pod waits for a claim.\n", file) >= 0;
    bool ok = sheet_add(&sheet, headings);
    json_array_foreach (claims, i, claim)
        ok = ok && add_claim(&sheet, claim);
    ok = ok && sheet_print(&sheet, style, file);
    sheet_dispose(&sheet);
    return ok;
}
