/*
 * The answer to a list in pages, or to the probe.
 */
#include "cache/watch/reflector_internal.h"

/* Whether this is the list that was requested. All before its items has been read. */
static bool is_list(const struct reflector *reflector)
{
    static const struct type none;
    const struct document *document = &reflector->document;
    struct type item = type_of_item(&none, &document->type);

    return document->has_items && reflector_is_of_kind(reflector, &item) &&
           version_of(slice_of(reflector->meta.version)) != 0;
}

/* Returns whether the answer continues. */
static bool begin_page(struct reflector *reflector)
{
    struct slice version = slice_of(reflector->meta.version);

    if (!is_list(reflector))
        return reflector_give_up(reflector, RESTART_MALFORMED, false);
    if (reflector_is_older(reflector, version) && !reflector->overrides) {
        atomic_fetch_add(&reflector->status->restarts[RESTART_OLDER_HISTORY], 1);
        reflector->overrides = true;
    }
    reflector_begin_list(reflector);
    return true;
}

/* Whether the next page would be this one again (a cache in between that ignores the query), or
 * there are too many. */
static bool is_endless(const struct reflector *reflector)
{
    const char *next = reflector->meta.continue_token;

    return *next != '\0' && (reflector->pages == PAGES_MAX || strcmp(next, reflector->page) == 0);
}

/* The page is complete. Without a continue token, so is the list. Returns whether the
 * answer continues. */
static bool end_page(struct reflector *reflector)
{
    reflector->pages++;
    if (is_endless(reflector))
        return reflector_give_up(reflector, RESTART_MALFORMED, true);
    reflector->is_established = true;
    reflector->news++;
    memcpy(reflector->page, reflector->meta.continue_token, sizeof reflector->page);
    if (reflector->page[0] == '\0')
        reflector_end_list(reflector, slice_of(reflector->meta.version));
    return true;
}

static bool take_item(struct reflector *reflector)
{
    const struct document *document = &reflector->document;
    struct type type = type_of_item(&document->item, &document->type);
    struct slice version;

    if (!reflector_is_of_kind(reflector, &type))
        return reflector_give_up(reflector, RESTART_MALFORMED, false);
    return reflector_take_object(reflector, CHANGE_PUT, document->extent, &version);
}

bool reflector_take_page(struct reflector *reflector)
{
    struct buf *window = &reflector->window;
    struct document *document = &reflector->document;
    size_t taken = 0;
    bool continues = true;

    while (continues && !reflector->is_page_whole) {
        struct pull json;
        bool is_start = document->depth == 0;
        arena_reset(&reflector->arena);
        if (!document_step(document, &json,
                           (struct slice){window->bytes + taken, window->len - taken},
                           &reflector->arena)) {
            continues = json.is_truncated || reflector_give_up(reflector, RESTART_MALFORMED, false);
            break;
        }
        taken += (size_t)(json.at - json.start);
        continues =
            (!is_start || begin_page(reflector)) && (!document->has_value || take_item(reflector));
        reflector->is_page_whole = continues && document->depth == 0;
    }
    reflector_consume(reflector, taken);
    reflector->has_read = taken != 0;
    return continues && (!reflector->is_page_whole || end_page(reflector));
}

int reflector_check_probe(struct reflector *reflector, unsigned status)
{
    struct slice text = buf_slice(&reflector->window);
    struct status_details details;
    struct pull json;

    arena_reset(&reflector->arena);
    if (status != 200) {
        bool is_refused =
            status_details_read(text, &reflector->arena, &details) && status_is_too_large(&details);
        return is_refused ? RESTART_OLDER_HISTORY : (int)reflector_status_reason(status);
    }
    if (!document_step(&reflector->document, &json, text, &reflector->arena) || !is_list(reflector))
        return RESTART_MALFORMED;
    return reflector_is_older(reflector, slice_of(reflector->meta.version)) ? RESTART_OLDER_HISTORY
                                                                            : -1;
}
