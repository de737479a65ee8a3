#include "simulation/fiber.h"

#include <stdlib.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

enum { STACK_BYTES = 256 * 1024 };

struct fiber {
    struct fiber *next; /* of all that were ever made: they are used again */
    ucontext_t context, resumer;
    void (*function)(void *context);
    void *argument, *owner;
    bool is_alive;
    unsigned long waits;
    void *fake_stack, *resumer_fake_stack; /* of the address sanitizer */
    const void *resumer_stack;
    size_t resumer_stack_bytes;
    _Alignas(16) char stack[STACK_BYTES];
};

static struct fiber *fibers, *current;

/* The sanitizer has to know which stack is the one in use. */
static void before_switch(void **fake_stack, const void *stack, size_t bytes)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(fake_stack, stack, bytes);
#else
    (void)fake_stack, (void)stack, (void)bytes;
#endif
}

static void after_switch(void *fake_stack, const void **stack, size_t *bytes)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake_stack, stack, bytes);
#else
    (void)fake_stack, (void)stack, (void)bytes;
#endif
}

static void enter(struct fiber *fiber)
{
    current = fiber;
    before_switch(&fiber->resumer_fake_stack, fiber->stack, sizeof fiber->stack);
    if (swapcontext(&fiber->resumer, &fiber->context) != 0)
        abort();
    after_switch(fiber->resumer_fake_stack, NULL, NULL);
    current = NULL;
}

static void leave(struct fiber *fiber, bool for_good)
{
    before_switch(for_good ? NULL : &fiber->fake_stack, fiber->resumer_stack,
                  fiber->resumer_stack_bytes);
    if (swapcontext(&fiber->context, &fiber->resumer) != 0)
        abort();
    after_switch(fiber->fake_stack, &fiber->resumer_stack, &fiber->resumer_stack_bytes);
}

static void body(void)
{
    struct fiber *fiber = current;

    after_switch(NULL, &fiber->resumer_stack, &fiber->resumer_stack_bytes);
    fiber->function(fiber->argument);
    fiber->is_alive = false;
    fiber->waits++;
    leave(fiber, true);
}

void fiber_start(void (*function)(void *context), void *context, void *owner)
{
    struct fiber *fiber = fibers;

    while (fiber != NULL && fiber->is_alive)
        fiber = fiber->next;
    if (fiber == NULL) {
        fiber = calloc(1, sizeof *fiber);
        if (fiber == NULL)
            abort();
        fiber->next = fibers;
        fibers = fiber;
    }
    fiber->function = function;
    fiber->argument = context;
    fiber->owner = owner;
    fiber->is_alive = true;
    (void)getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = sizeof fiber->stack;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, body, 0);
    enter(fiber);
}

struct fiber *fiber_current(void)
{
    return current;
}

void *fiber_owner(const struct fiber *fiber)
{
    return fiber->owner;
}

unsigned long fiber_waits(const struct fiber *fiber)
{
    return fiber->waits;
}

void fiber_wait(void)
{
    leave(current, false);
}

void fiber_resume(struct fiber *fiber, unsigned long waits)
{
    if (!fiber->is_alive || fiber->waits != waits)
        return;
    fiber->waits++;
    enter(fiber);
}

void fibers_finish(const void *owner)
{
    for (struct fiber *fiber = fibers; fiber != NULL; fiber = fiber->next)
        while (fiber->is_alive && fiber->owner == owner)
            fiber_resume(fiber, fiber->waits);
}

void fibers_dispose(void)
{
    while (fibers != NULL) {
        struct fiber *next = fibers->next;
        free(fibers);
        fibers = next;
    }
}
