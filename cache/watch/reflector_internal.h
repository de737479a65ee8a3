/*
 * reflector_internal: what the files of the reflector share. Only they include it.
 *
 * A function that returns "whether the answer continues" returns false after reflector_give_up, and
 * then reflector_take returns false.
 *
 * Threads: as the reflector.
 */
#ifndef CACHE_WATCH_REFLECTOR_INTERNAL_H
#define CACHE_WATCH_REFLECTOR_INTERNAL_H

#include "cache/watch/reflector.h"

/* ---- reflector_answers.c ---- */

/* The reason to restart after an HTTP status, or the code of an ERROR event. */
enum restart reflector_status_reason(unsigned status);

/* Whether the status means that the server cannot stream lists: it does not know the parameters, or
 * its etcd does not report progress. */
bool reflector_refuses_streaming(const struct reflector *reflector, int64_t code);

/* Ends the answer for that reason. restarts_list: the next request is a new list. Returns false. */
bool reflector_give_up(struct reflector *reflector, enum restart reason, bool restarts_list);

/* Reads the complete answer to the probe: a reason to restart, or -1: the server's history includes
 * all that we have seen. */
int reflector_check_probe(struct reflector *reflector, unsigned status);

/* ---- reflector_objects.c ---- */

/* Decodes an object and passes it to the sink; skips it if it cannot be decoded. Sets *version.
 * Returns whether the answer continues. */
bool reflector_take_object(struct reflector *reflector, enum watch_change change, struct slice text,
                           struct slice *version);

/* What a text says about the identity of its object; what cannot be read is empty. */
struct identity {
    struct slice type; /* of the event */
    struct slice kind, api_version, ns, name, uid, version;
};

/* Reads an object, or an event, up to where it cannot be decoded. */
struct identity identity_read(struct slice text, bool is_event, struct arena *arena);

/* Whether it identifies an object of that kind. */
bool identity_is_complete(const struct identity *identity, enum kind kind);

/* Skips an object that cannot be decoded: counts and logs it (once a second, because its owner may
 * write it often). The object stays as it was known, unless this is its deletion. */
void reflector_skip(struct reflector *reflector, enum watch_change change,
                    const struct identity *identity, struct slice text, const char *problem);

/* ---- reflector.c ---- */

/* The version has advanced, or a list is complete. */
void reflector_advanced(struct reflector *reflector);

#endif
