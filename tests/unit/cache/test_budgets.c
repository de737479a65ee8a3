/* Evictions, counted against PodDisruptionBudgets. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "cache/cluster/cluster.h"
#include "config/base/buf.h"
#include "support/load.h"

static struct cluster cluster;

static void setup(void)
{
    cluster_init(&cluster);
}

static void teardown(void)
{
    cluster_dispose(&cluster);
}

TestSuite(budgets, .init = setup, .fini = teardown);

/* A pod with a claim; labels: JSON. */
static void load_pod(const char *name, const char *labels, const char *phase)
{
    char text[512];

    (void)snprintf(text, sizeof text,
                   "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\","
                   "\"labels\":%s},\"spec\":{\"nodeName\":\"n\",\"volumes\":[{\"name\":\"v\","
                   "\"persistentVolumeClaim\":{\"claimName\":\"c\"}}]},\"status\":{\"phase\":"
                   "\"%s\"}}",
                   name, labels, phase);
    load_text(&cluster, text);
}

static void load_budget(const char *name, int allowed, const char *selector)
{
    struct buf text;

    buf_init(&text, 64 << 20);
    buf_printf(
        &text,
        "{\"apiVersion\":\"policy/v1\",\"kind\":\"PodDisruptionBudget\",\"metadata\":{"
        "\"name\":\"%s\"},\"spec\":{\"selector\":%s},\"status\":{\"disruptionsAllowed\":%d}}",
        name, selector, allowed);
    load_text(&cluster, buf_text(&text));
    buf_dispose(&text);
}

struct row {
    const char *selector, *labels, *phase;
    int allowed;
    size_t violations; /* as kube-scheduler counts */
    bool breaks;       /* as the API server does, as far as it does not refuse each by itself */
};

#define APP  "{\"matchLabels\":{\"app\":\"x\"}}"
#define RUNS "Running"

/* Of two such pods. */
static const struct row rows[] = {
    {APP, "{\"app\":\"x\"}", RUNS, 2, 0, false},
    {APP, "{\"app\":\"x\"}", RUNS, 1, 1, true},
    {APP, "{\"app\":\"y\"}", RUNS, 1, 0, false},
    /* none is allowed: the API server refuses each by itself, if it counts it at all */
    {APP, "{\"app\":\"x\"}", RUNS, 0, 2, false},
    /* the API server does not ask budgets about these */
    {APP, "{\"app\":\"x\"}", "Pending", 1, 1, false},
    /* kube-scheduler takes an empty selector for none, and looks at no pod without labels */
    {"{}", "{\"app\":\"x\"}", RUNS, 1, 0, true},
    {"{}", "{}", RUNS, 1, 0, true},
    {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"DoesNotExist\"}]}", "{}", RUNS, 1, 0,
     true},
    {"null", "{\"app\":\"x\"}", RUNS, 1, 0, false},
    /* both have the label of the first one: only that one is stored without it */
    {"{\"matchLabels\":{\"statefulset.kubernetes.io/pod-name\":\"one\"}}",
     "{\"statefulset.kubernetes.io/pod-name\":\"one\"}", RUNS, 1, 1, true},
    {"{\"matchLabels\":{\"statefulset.kubernetes.io/pod-name\":\"two\"}}",
     "{\"statefulset.kubernetes.io/pod-name\":\"one\"}", RUNS, 0, 0, false},
};

static void find_pods(const struct pod *pods[2])
{
    pods[0] = cluster_find_pod(&cluster, SLICE("default"), SLICE("one"));
    pods[1] = cluster_find_pod(&cluster, SLICE("default"), SLICE("two"));
}

Test(budgets, are_counted_as_by_who_counts)
{
    const struct pod *pods[2];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        load_pod("one", row->labels, row->phase);
        load_pod("two", row->labels, row->phase);
        load_budget("b", row->allowed, row->selector);
        find_pods(pods);
        cr_expect_eq(cluster_count_budget_violations(&cluster, pods, 2), row->violations, "row %zu",
                     i);
        cr_expect_eq(cluster_breaks_budgets(&cluster, pods, 2), row->breaks, "row %zu", i);
        teardown();
        setup();
    }
}

/* None of them matches; looking at all of them would take too long. */
Test(budgets, that_are_too_many_to_look_at_count_as_broken)
{
    enum { BUDGETS = 1200, VALUES = 330 };
    const struct pod *pods[2];
    struct buf selector;

    buf_init(&selector, 1 << 20);
    buf_put(&selector,
            SLICE("{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"In\",\"values\":[\"y\""));
    for (int i = 0; i < VALUES; i++)
        buf_printf(&selector, ",\"value-%05d\"", i);
    buf_put(&selector, SLICE("]}]}"));
    load_pod("one", "{\"app\":\"x\"}", RUNS);
    load_pod("two", "{\"app\":\"x\"}", RUNS);
    find_pods(pods);
    for (int i = 0; i < BUDGETS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "b-%d", i);
        load_budget(name, 100, buf_text(&selector));
        if (i == 0)
            cr_expect_not(cluster_breaks_budgets(&cluster, pods, 2), "one is counted");
    }
    cr_expect_eq(cluster_count_budget_violations(&cluster, pods, 2), 2);
    cr_expect(cluster_breaks_budgets(&cluster, pods, 2));
    buf_dispose(&selector);
}
