/*
 * inventory: the records of the input, by kind and by name. Objects come as JSON text, from files
 * or from a live cluster, in any order; rules run when all of them are there.
 *
 *     struct type type = {"apps/v1", "Deployment"};
 *     struct source_text object = {.type = &type, .text = text, .path = path, .place = place};
 *     struct inventory inventory;
 *     inventory_init(&inventory);
 *     if (inventory_take(&inventory, &object, err) >= 0)
 *         (void)inventory_link(&inventory, err);
 *     inventory_dispose(&inventory);
 *
 * Threads: one.
 */
#ifndef EXTENDER_AUDIT_INVENTORY_H
#define EXTENDER_AUDIT_INVENTORY_H

#include "cache/snapshot/source.h"
#include "extender/audit/records.h"

struct inventory {
    struct slice ns;      /* of objects without one, set by the owner; empty: "default" */
    struct pool pool;     /* the records */
    struct arena arena;   /* their parts */
    struct arena scratch; /* of the object that is being read */
    struct table table;
    struct record *first[RECORD_KIND_COUNT], *last[RECORD_KIND_COUNT]; /* in the input's order */
    size_t counts[RECORD_KIND_COUNT]; /* objects, also those without a record */
    const char *last_path;            /* most objects have the file of the one before */
    struct slice *recent; /* texts by their hash: many objects have the same namespace, node, ... */
    char *texts;          /* room for texts */
    size_t texts_left;
    size_t
        too_many_volumes; /* pods and templates with over POD_CLAIMS_MAX: none of these is kept */
    bool is_listed[RECORD_KIND_COUNT]; /* set by the owner: all objects of a live cluster came */
    bool is_cluster;                   /* the objects are, or look like, those of a cluster */
    bool uses_marks;                   /* a pod has the mark */
    bool binds_are_admitted;           /* claimguard's webhook checks Bindings */
};

void inventory_init(struct inventory *inventory);
void inventory_dispose(struct inventory *inventory);

/* Reads an object; path NULL: of a live cluster. Returns 1 if the audit reads its kind, 0 if not.
 * Errors: ERROR_INVALID "FILE:LINE:COL: ...", ERROR_NO_MEMORY. */
int inventory_take(struct inventory *inventory, const struct source_text *object,
                   struct error *err);

/* Removes what was read of a kind: a list of a live cluster begins, or begins again. */
void inventory_forget(struct inventory *inventory, enum record_kind kind);

/* The hash of a claim's namespace and name (64 bits, seeded); not 0. */
uint64_t inventory_claim_hash(const struct inventory *inventory, struct slice ns,
                              struct slice name);

/* Connects the records, after the last object. Errors: ERROR_NO_MEMORY. */
int inventory_link(struct inventory *inventory, struct error *err);

/* The record of that kind and name; NULL: the input has none. An empty namespace is "default". */
struct record *inventory_find(const struct inventory *inventory, enum record_kind kind,
                              struct slice ns, struct slice name);

/* Whether an object of that kind that is not in the input does not exist. */
bool inventory_is_complete(const struct inventory *inventory, enum record_kind kind);

#endif
