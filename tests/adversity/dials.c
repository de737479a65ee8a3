/* Who opens thousands of connections a second to the port for reviews, and never finishes a TLS
 * handshake, is a tenant with a pod: the reviews of API servers still have answers.
 *
 * CLAIMGUARD_REVIEWS: how many there are at least. Each has a connection of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/dials.h"
#include "support/reviews.h"

#ifdef __SANITIZE_THREAD__
enum { REVIEWS = 20, DIALS = 1000 }; /* a review takes seconds; races show as well */
#else
enum {
    REVIEWS = 60,
    DIALS = 4000
}; /* at least: a slow machine has a slower flood, and a longer one */
#endif

enum { DIALS_PER_SECOND = 4000, KEPT = 1000 };

static bool is_reviewed(const struct guard *guard)
{
    return strcmp(admit(guard, &(struct test_review){.pod = "a", .node = "node-1"}), "allowed") ==
           0;
}

static void expect_answers(const struct guard *guard, unsigned addresses)
{
    struct dials dials = {.port = admission_port(guard),
                          .per_second = DIALS_PER_SECOND,
                          .addresses = addresses,
                          .kept = KEPT};
    const char *reviews = getenv("CLAIMGUARD_REVIEWS");
    int failed = 0, calls = 0, least = reviews == NULL ? REVIEWS : atoi(reviews);
    int64_t longest_ms = 0;

    dials_begin(&dials);
    for (; calls < least || atomic_load(&dials.count) < DIALS; calls++) {
        int64_t before_ms = clock_ms();
        failed += !is_reviewed(guard);
        int64_t took_ms = clock_ms() - before_ms;
        longest_ms = took_ms > longest_ms ? took_ms : longest_ms;
        sleep_ms(50);
    }
    dials_end(&dials);
    printf("%u dials, %d of %d calls failed, the longest took %lld ms\n", atomic_load(&dials.count),
           failed, calls, (long long)longest_ms);
    check(failed == 0, "%d failed", failed);
}

static void flood(unsigned addresses)
{
    struct guard guard;

    put_claim("data");
    put_pod(&(struct test_pod){.name = "a", .claim = "data"});
    admission_start(&guard, "");
    expect_answers(&guard, addresses);
    guard_stop(&guard);
}

static void dials_that_never_finish_stop_no_review(void)
{
    flood(1);
}

/* A tenant has as many addresses as pods: none of them has so many connections that it looks like a
 * flood. */
static void dials_of_many_addresses_stop_no_review(void)
{
    flood(2);
    flood(64);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {SCENARIO(dials_that_never_finish_stop_no_review),
                                          SCENARIO(dials_of_many_addresses_stop_no_review)};
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
