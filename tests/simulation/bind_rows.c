/* What a bind leaves behind when its Binding may still be applied: a row each. */
#include "simulation/rows.h"

enum { DATA = 1 };

/* A pod whose Binding the API server applies so many seconds later than its connection has died. */
static struct sim_pod *create_in_doubt(const char *name, uint64_t seconds)
{
    world.fault = (struct planned_fault){.count = 1,
                                         .method = "POST",
                                         .path = "/binding",
                                         .fate = FATE_ORPHANED,
                                         .after_ns = seconds * SECOND};
    struct sim_pod *pod = create(name, 0, DATA);
    for (int i = 0; i < 10 && world.fault.count != 0; i++)
        wait_seconds(1);
    expect(world.fault.count == 0 && pod->node < 0, "its Binding is on its way");
    return pod;
}

/* So many Bindings of the first pod are refused, and never applied. */
static void refuse_bindings(unsigned count)
{
    world.fault = (struct planned_fault){.count = count,
                                         .method = "POST",
                                         .path = "first/binding",
                                         .fate = FATE_LOST,
                                         .status = 403};
}

/* ---- the rows ---- */

static void a_binding_in_doubt_keeps_its_claim(void)
{
    const struct sim_pod *first = create_in_doubt("first", 40);
    const struct sim_pod *second = create("second", 0, DATA);

    refuse_bindings(1000); /* by a webhook that does not know it */
    wait_seconds(30);
    expect(second->node < 0 && world.fault.count < 1000, "the first one's binds are refused");
    wait_seconds(30);
    expect(first->node >= 0 && second->node < 0, "then the first Binding is applied");
}

static void a_binding_in_doubt_ends_with_its_pod(void)
{
    struct sim_pod *first = create_in_doubt("first", 3600);
    server_terminate(first, 0);
    const struct sim_pod *second = create("second", 0, DATA);
    wait_seconds(10);
    expect(second->node >= 0, "another pod gets the claim, long before the doubt's own end");
}

int main(int argc, char **argv)
{
    static const struct row rows[] = {
        {ROW(a_binding_in_doubt_keeps_its_claim), NULL},
        {ROW(a_binding_in_doubt_ends_with_its_pod), NULL},
    };

    return rows_run(rows, sizeof rows / sizeof *rows, argc, argv);
}
