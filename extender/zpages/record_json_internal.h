/* record_json_internal: what the files record_json*.c share. Only they include it. */
#ifndef EXTENDER_ZPAGES_RECORD_JSON_INTERNAL_H
#define EXTENDER_ZPAGES_RECORD_JSON_INTERNAL_H

#include "extender/zpages/json_fields.h"
#include "extender/zpages/record_json.h"

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

/* The fields of a PersistentVolume beside its metadata. */
void record_json_volume_fields(struct buf *out, const struct resource *volume);

#endif
