/* What tests/commands/why cannot show, because a snapshot never says that there are none: of a live
 * cluster, what is not there does not exist. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "config/config.h"
#include "extender/commands/why/why.h"

static struct error err;
static const struct operand operands[] = {{{"n", 1}, {"web-1", 5}, KIND_POD}};
static const struct why_question question = {.operands = operands, .count = 1};

#define POD(spec, status) \
    "kind: Pod\nmetadata: {name: web-1, namespace: n, uid: p}\nspec: {" spec "}\nstatus: {" status \
    "}\n"
#define CLAIM_VOLUME  "volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]"
#define INLINE_VOLUME "volumes: [{name: v, csi: {driver: d.example.com}}]"
#define CLAIM(spec, status) \
    "---\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: n, uid: c}\nspec: " \
    "{accessModes: [ReadWriteOnce], " spec "}\nstatus: {phase: " status "}\n"
#define VOLUME \
    "---\nkind: PersistentVolume\nmetadata: {name: pv}\nspec: {accessModes: [ReadWriteOnce], " \
    "csi: {driver: d.example.com}, claimRef: {namespace: n, name: data}}\n"
#define ON_NODE "nodeName: node-1, "

static const struct {
    const char *cluster, *cause;
    enum kind kind; /* that is not there */
} rows[] = {
    {POD(CLAIM_VOLUME, "phase: Pending"), "ClaimMissing", KIND_CLAIM},
    {POD(CLAIM_VOLUME, "phase: Pending") CLAIM("storageClassName: fast", "Pending"),
     "StorageClassMissing", KIND_STORAGE_CLASS},
    {POD(CLAIM_VOLUME, "phase: Pending") CLAIM("volumeName: pv", "Bound"), "VolumeMissing",
     KIND_VOLUME},
    {POD(INLINE_VOLUME, "phase: Pending"), "DriverMode", KIND_CSI_DRIVER},
    {POD(ON_NODE CLAIM_VOLUME, "phase: Pending") CLAIM("volumeName: pv", "Bound") VOLUME,
     "NotAttached", KIND_VOLUME_ATTACHMENT},
    {POD(CLAIM_VOLUME, "phase: Pending")
         CLAIM("storageClassName: fast, volumeAttributesClassName: gold", "Pending"),
     "VolumeAttributesClass", KIND_VOLUME_ATTRIBUTES_CLASS},
};

static void read_cluster(struct inquiry *inquiry, struct why *why, const char *text)
{
    char path[] = "/tmp/claimguard-test-XXXXXX";
    const struct inquiry_origin origin = {.snapshot = path};
    const struct inquiry_wish wish = why_wish(why);
    FILE *file = fdopen(mkstemp(path), "w");

    cr_assert_not_null(file);
    (void)fputs(text, file);
    cr_assert_eq(fclose(file), 0);
    cr_assert_eq(inquiry_open(inquiry, &origin, &err), 0);
    cr_assert_eq(inquiry_read(inquiry, &wish, &err), 0, "%s", err.message);
    (void)unlink(path);
}

/* Whether the answer has the cause. */
static bool finds(struct why *why, const struct inquiry *inquiry, const struct config *config,
                  const char *cause)
{
    bool found = false, has = false;
    char *text = NULL;
    size_t len, i;
    FILE *file = open_memstream(&text, &len);
    json_t *item;

    cr_assert_not_null(file);
    cr_assert(why_answer(why, inquiry, config, &found));
    cr_assert(why_print(why, OUTPUT_JSON, file));
    cr_assert_eq(fclose(file), 0);
    json_t *answer = json_loadb(text, len, 0, NULL);
    free(text);
    cr_assert_not_null(answer);
    cr_expect(found);
    json_array_foreach (
        json_object_get(json_array_get(json_object_get(answer, "pods"), 0), "causes"), i, item)
        has = has || strcmp(json_string_value(json_object_get(item, "cause")), cause) == 0;
    json_decref(answer);
    return has;
}

Test(why, takes_what_is_not_there_for_missing_only_if_all_was_listed)
{
    struct config *config = NULL;

    cr_assert_eq(config_load(&config, NULL, &err), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct why *why = why_new(&question);
        struct inquiry inquiry;
        cr_assert_not_null(why);
        read_cluster(&inquiry, why, rows[i].cluster);
        cr_expect_not(finds(why, &inquiry, config, rows[i].cause), "%s", rows[i].cause);
        inquiry.snapshot = NULL; /* as if it was listed */
        cr_expect(finds(why, &inquiry, config, rows[i].cause), "%s", rows[i].cause);
        inquiry.gaps[rows[i].kind] = GAP_FORBIDDEN;
        cr_expect_not(finds(why, &inquiry, config, rows[i].cause), "%s", rows[i].cause);
        inquiry_close(&inquiry);
        why_free(why);
    }
    config_free(config);
}
