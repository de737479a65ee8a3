/* inventory_internal: what inventory.c and inventory_records.c share. Only they include it. */
#ifndef EXTENDER_COMMANDS_AUDIT_INVENTORY_INTERNAL_H
#define EXTENDER_COMMANDS_AUDIT_INVENTORY_INTERNAL_H

#include "extender/commands/audit/reading.h"

/* An object that is being taken. */
struct taking {
    struct inventory *inventory;
    const struct source_text *object;
    struct reading reading;
    enum kind kind;
    uint32_t twin;   /* of a claim or a volume */
    bool has_failed; /* no memory */
};

/* The name of a claim or a volume in the cluster, in scratch; {NULL, 0}: no memory. */
struct slice inventory_stored_name(struct inventory *inventory, struct slice name, uint32_t twin);

/* Makes a record of what was read, unless no rule needs it. */
void inventory_record(struct taking *taking);

/* Makes the record known by its name; or one of the twins of another one that has it, which it
 * returns. */
void *inventory_add_name(struct taking *taking, struct record *record);

#endif
