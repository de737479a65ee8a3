/*
 * record_json: writes the cluster's records as the objects that they were read from, in JSON, with
 * what the cluster has kept of them: read again, each gives the same record, and so the same
 * verdicts. What is known but not its value is written as a value that no object has: the time
 * 1970-01-01T00:00:00Z for when a deletion began, `{}` for a field of which only the presence
 * counts, "unknown" for a name.
 *
 * Threads: any, under the cluster's lock. Errors: the buffer's.
 */
#ifndef EXTENDER_SERVING_ZPAGES_RECORD_JSON_H
#define EXTENDER_SERVING_ZPAGES_RECORD_JSON_H

#include "cache/cluster/reservation.h"
#include "config/base/buf.h"

/* The names of volumes are those of the pod if its mounts are kept (struct kept_mounts). Otherwise
 * there is a volume for each claim, and no other. */
void record_json_pod(struct buf *out, const struct pod *pod);

/* Which exist. */
void record_json_claim(struct buf *out, const struct claim *claim);
void record_json_node(struct buf *out, const struct node *node);

/* The node's, which is there. */
void record_json_csi_node(struct buf *out, const struct node *node);

/* Of any other kind. */
void record_json_resource(struct buf *out, enum kind kind, const struct resource *resource);

/* claimguard's own kinds: cache/objects/own_object.h. */
void record_json_reservation(struct buf *out, const struct reservation *reservation,
                             uint64_t now_ns);
void record_json_about(struct buf *out, enum own_kind about, struct slice name);

/*
 * ---- fields ----
 *
 * Write JSON objects field by field, with the commas between them. A field without a
 * value (an empty text, false) is left out.
 *
 *     struct buf out;
 *     buf_init(&out, 4096);
 *     json_begin(&out, NULL, '{');
 *     json_text(&out, "name", name);
 *     json_begin(&out, "claims", '[');
 *     json_text(&out, NULL, SLICE("data"));
 *     json_end(&out, ']');
 *     json_end(&out, '}');
 */
/* A comma, unless this is the first field or item; then the key, unless that is NULL (an item). An
 * item behind a line feed has no comma either. */
static inline void json_key(struct buf *out, const char *key)
{
    char last = out->len == 0 ? '\n' : out->bytes[out->len - 1];

    if (key == NULL) {
        buf_put(out, last == '[' || last == '\n' ? SLICE("") : SLICE(","));
        return;
    }
    buf_put(out, last == '{' ? SLICE("\"") : SLICE(",\""));
    buf_put(out, slice_of(key));
    buf_put(out, SLICE("\":"));
}

static inline void json_begin(struct buf *out, const char *key, char bracket)
{
    json_key(out, key);
    buf_put(out, (struct slice){&bracket, 1});
}

static inline void json_end(struct buf *out, char bracket)
{
    buf_put(out, (struct slice){&bracket, 1});
}

static inline void json_text(struct buf *out, const char *key, struct slice text)
{
    if (text.len == 0)
        return;
    json_key(out, key);
    buf_json(out, text);
}

/* The value, as JSON. */
static inline void json_value(struct buf *out, const char *key, struct slice value)
{
    json_key(out, key);
    buf_put(out, value);
}

static inline void json_flag(struct buf *out, const char *key, bool is_set)
{
    if (is_set)
        json_value(out, key, SLICE("true"));
}

static inline void json_number(struct buf *out, const char *key, int64_t number)
{
    json_key(out, key);
    buf_printf(out, "%lld", (long long)number);
}

/* An object with one text. */
static inline void json_object_of(struct buf *out, const char *key, const char *field,
                                  struct slice text)
{
    if (text.len == 0)
        return;
    json_begin(out, key, '{');
    json_text(out, field, text);
    json_end(out, '}');
}

/* A field of which only the presence counts. */
static inline void json_presence(struct buf *out, const char *key, bool is_present)
{
    if (is_present)
        json_value(out, key, SLICE("{}"));
}

/* ---- what all objects begin with ---- */

/* Begins an object of the kind, and its metadata. version 0: not known. */
static inline void record_json_begin(struct buf *out, enum kind kind, struct slice ns,
                                     struct slice name, uint64_t version)
{
    json_begin(out, NULL, '{');
    json_text(out, "apiVersion", slice_of(kind_api_version(kind)));
    json_text(out, "kind", slice_of(kind_text(kind)));
    json_begin(out, "metadata", '{');
    json_text(out, "namespace", ns);
    json_text(out, "name", name);
    if (version != 0) {
        json_key(out, "resourceVersion");
        buf_printf(out, "\"%llu\"", (unsigned long long)version);
    }
}

static inline void record_json_uid(struct buf *out, const char *key, const struct uid *uid)
{
    char text[UID_TEXT_BYTES];

    json_text(out, key, uid_text(uid, text));
}

/* Since when is not kept. */
static inline void record_json_deletion(struct buf *out, bool is_deleting)
{
    if (is_deleting)
        json_text(out, "deletionTimestamp", SLICE("1970-01-01T00:00:00Z"));
}

#endif
