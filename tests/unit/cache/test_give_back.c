/* The memory of objects that are gone is given back to the system. */
#include <criterion/criterion.h>

#include "cache/cluster/cluster.h"
#include "config/base/buf.h"
#include "support/load.h"

enum { OBJECTS = 4000, FEW = OBJECTS / 100, NODES = 40, VERSION = 1 };

static struct cluster cluster;

/* With labels of a StatefulSet. */
static void put_pod(struct buf *out, int i)
{
    buf_printf(out,
               "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"web-%d\","
               "\"labels\":{\"app\":\"web-%d\",\"statefulset.kubernetes.io/pod-name\":\"web-%d\"}},"
               "\"spec\":{\"nodeName\":\"node-%d\",\"volumes\":[{\"name\":\"v\","
               "\"persistentVolumeClaim\":{\"claimName\":\"data-%d\"}}]}}",
               i, i / 20, i, i % NODES, i);
}

static void put_claim(struct buf *out, int i)
{
    buf_printf(out,
               "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":"
               "\"data-%d\"},\"spec\":{\"volumeName\":\"volume-%d\"}}",
               i, i);
}

static void put_volume(struct buf *out, int i)
{
    buf_printf(out,
               "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":"
               "\"volume-%d\"},\"spec\":{\"csi\":{\"driver\":\"d\"},\"claimRef\":{\"namespace\":"
               "\"default\",\"name\":\"data-%d\"}}}",
               i, i);
}

/* A list of the first `count` objects. */
static void list(enum kind kind, void (*put)(struct buf *out, int i), int count)
{
    struct buf text;

    buf_init(&text, 64 << 20);
    buf_put(&text, SLICE("{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":["));
    for (int i = 0; i < count; i++) {
        buf_put(&text, i == 0 ? SLICE("") : SLICE(","));
        put(&text, i);
    }
    buf_put(&text, SLICE("]}"));
    cluster_list_begin(&cluster, kind, false, 0);
    load_text(&cluster, buf_text(&text));
    while (cluster_list_end(&cluster, kind, VERSION, NULL))
        continue;
    buf_dispose(&text);
}

/* Returns the pages that have records, or wait for them. */
static size_t list_all(int count)
{
    list(KIND_VOLUME, put_volume, count);
    list(KIND_CLAIM, put_claim, count);
    list(KIND_POD, put_pod, count);
    return cluster.pool.page_count + cluster.pool.spare_count;
}

Test(give_back, what_is_gone_takes_no_memory)
{
    cluster_init(&cluster);
    size_t full = list_all(OBJECTS), few = list_all(FEW);
    size_t used = cluster.pool.page_count;
    (void)list_all(0);
    cr_expect_gt(full, (size_t)4 * POOL_SPARE_PAGES, "%zu pages", full);
    cr_expect_leq(few, full / 10 + POOL_SPARE_PAGES, "%zu pages of %zu", few, full);
    cr_expect_leq(used, full / 10, "%zu pages of %zu", used, full);
    cr_expect_eq(cluster.pool.page_count, 0, "%zu pages", cluster.pool.page_count);
    cr_expect_leq(cluster.pool.spare_count, POOL_SPARE_PAGES);
    cr_expect_eq(cluster.names.table.count, 0);
    cluster_dispose(&cluster);
}
