/* What a bind leaves behind when its Binding may still be applied: a row each. */
#include "simulation/rows.h"

enum { DATA = 1 };

/* The connection dies behind the next Binding, which the API server applies so much later. */
static void delay_a_binding(uint64_t seconds)
{
    world.fault = (struct planned_fault){.count = 1,
                                         .method = "POST",
                                         .path = "/binding",
                                         .fate = FATE_ORPHANED,
                                         .after_ns = seconds * SECOND};
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
    delay_a_binding(40);
    const struct sim_pod *first = create("first", 0, DATA);
    wait_seconds(1);
    const struct sim_pod *second = create("second", 0, DATA);

    expect(world.fault.count == 0 && first->node < 0, "the Binding is on its way");
    refuse_bindings(1000); /* by someone who knows nothing of it */
    wait_seconds(30);
    expect(second->node < 0 && world.fault.count < 1000, "the first one's binds are refused");
    wait_seconds(30);
    expect(first->node >= 0 && second->node < 0, "then the first Binding is applied");
}

static void a_binding_in_doubt_ends_with_its_pod(void)
{
    delay_a_binding(3600);
    struct sim_pod *first = create("first", 0, DATA);
    wait_seconds(1);
    refuse_bindings(1000);
    wait_seconds(5);
    server_terminate(first, 0);
    const struct sim_pod *second = create("second", 0, DATA);
    world.fault.count = 0;
    wait_seconds(90);
    expect(second->node >= 0, "who waits gets it");
}

int main(int argc, char **argv)
{
    static const struct row rows[] = {
        {ROW(a_binding_in_doubt_keeps_its_claim), NULL},
        {ROW(a_binding_in_doubt_ends_with_its_pod), NULL},
    };

    return rows_run(rows, sizeof rows / sizeof *rows, argc, argv);
}
