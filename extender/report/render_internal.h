/*
 * What render.c, render_table.c and render_yaml.c share. Only these files include this. All
 * functions write to stdout, and set render->ok to false on an error.
 */
#ifndef EXTENDER_REPORT_RENDER_INTERNAL_H
#define EXTENDER_REPORT_RENDER_INTERNAL_H

#include <yaml.h>

#include "config/base/buf.h"
#include "extender/report/render.h"
#include "extender/report/sheet.h"

struct render {
    enum output_format format;
    bool is_list;
    bool ok;            /* no error so far */
    size_t count;       /* results */
    size_t schedulable; /* of them */
    bool has_victims;   /* of any */
    struct sheet pods;
    struct sheet warnings;  /* of policies */
    struct sheet volumes;   /* the decisions about deferFSMount */
    yaml_emitter_t emitter; /* of YAML */
    struct buf text;        /* of one result as JSON */
};

/* A table is printed by render_table_finish, when its widths are known. */
void render_table_begin(struct render *render);
void render_table_put(struct render *render, const json_t *result);
void render_table_finish(const struct render *render);
void render_table_dispose(struct render *render);

void render_yaml_begin(struct render *render);
void render_yaml_put(struct render *render, const json_t *result);
void render_yaml_start(struct render *render, bool is_object);
void render_yaml_key(struct render *render, const char *key);
void render_yaml_end(struct render *render, bool is_object);
void render_yaml_finish(struct render *render);
void render_yaml_dispose(struct render *render);

#endif
