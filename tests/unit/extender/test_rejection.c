/* A rejection in pieces (extender/serving/protocol/protocol_filter.c) beside the same as one. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>

#include "extender/serving/protocol/protocol.h"
#include "extender/serving/verbs/scratch.h"

#define POD "\"Pod\":{\"metadata\":{\"name\":\"p\",\"uid\":\"u\"}}"

static struct arena arena;

static void setup(void)
{
    arena_init(&arena, 1 << 20);
}

static void teardown(void)
{
    arena_dispose(&arena);
}

TestSuite(rejection, .init = setup, .fini = teardown);

/* In memory of `room` bytes, or of what is left of the answer, of which not one more is written. */
static void put_pieces(struct buf *out, struct rejection *rejection, size_t room)
{
    while (out->len < rejection->bytes) {
        size_t left = rejection->bytes - out->len, size = left < room ? left : room;
        static const char zeros[64];
        char *memory = calloc(1, size + sizeof zeros);
        size_t count = protocol_next_piece(rejection, memory, size);
        cr_assert_arr_eq(memory + size, zeros, sizeof zeros);
        cr_assert(count != 0 && count <= size, "%zu bytes of %zu", count, size);
        buf_put(out, (struct slice){memory, count});
        free(memory);
    }
}

/* The names as they are written, and the reason. */
static void check_pieces(const char *names, struct slice reason, enum verdict_code code)
{
    struct filter_request request;
    struct rejection rejection;
    struct error err = {0};
    struct buf body, whole, pieces;

    buf_init(&body, 1 << 20);
    buf_init(&whole, 1 << 24);
    buf_init(&pieces, 1 << 24);
    buf_printf(&body, "{" POD ",\"NodeNames\":%s}", names);
    cr_assert_eq(protocol_read_filter(&request, buf_slice(&body), &arena, &err), 0);
    cr_assert_eq(protocol_write_rejected(&whole, &request, code, reason, &arena, &err), 0);
    json_t *value = json_loadb(whole.bytes, whole.len, 0, NULL);
    const char *map = code == CODE_UNSCHEDULABLE ? "FailedNodes" : "FailedAndUnresolvableNodes";
    cr_expect_eq(json_object_size(json_object_get(value, map)), request.node_count);
    json_decref(value);
    for (size_t room = REJECTION_PIECE_MIN; room < 200000; room = room * 3 / 2 + 7) {
        pieces.len = 0;
        cr_assert(protocol_begin_rejection(&rejection, &request, code, reason, &arena));
        put_pieces(&pieces, &rejection, room);
        cr_expect(slice_equal(buf_slice(&pieces), buf_slice(&whole)), "room %zu", room);
    }
    buf_dispose(&body);
    buf_dispose(&whole);
    buf_dispose(&pieces);
    arena_reset(&arena);
}

Test(rejection, in_pieces_is_the_same_as_in_one)
{
    static const char *const prefixes[] = {"node-", "n\\u0032-", "", "ip-10-0-0-0-eu-west-"};
    static const char *const commas[] = {",", " ,\n"};
    static char long_reason[4000];
    struct buf names;

    memset(long_reason, '"', sizeof long_reason - 1);
    buf_init(&names, 1 << 20);
    for (unsigned i = 0; i < 16; i++) {
        unsigned count = i % 2 == 0 ? 700 : i / 2;
        names.len = 0;
        buf_put(&names, SLICE("["));
        for (unsigned j = 0; j < count; j++) {
            buf_put(&names, slice_of(j == 0 ? "" : commas[i / 8]));
            buf_printf(&names, "\"%s%u\"", prefixes[i / 2 % 4], j * j);
        }
        buf_put(&names, SLICE("]"));
        check_pieces(buf_text(&names), SLICE("claim a/b is \"in use\""), CODE_UNSCHEDULABLE);
        check_pieces(buf_text(&names), slice_of(i % 3 == 0 ? long_reason : ""),
                     CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    }
    buf_dispose(&names);
}

/* The server allocates a piece of each connection. */
Test(rejection, a_piece_counts_as_memory_of_all_calls)
{
    struct quota quota = {.max_bytes = 2 * ANSWER_PIECE_BYTES};
    struct rejection pieces = {.bytes = 2 << 20};
    struct scratch calls[3];

    for (int i = 0; i < 3; i++) {
        scratch_init(&calls[i], 1 << 20, &quota);
        cr_expect_eq(scratch_begin_pieces(&calls[i], &pieces), i < 2);
    }
    cr_expect(calls[2].share.was_refused);
    scratch_reset(&calls[0]);
    cr_expect(scratch_begin_pieces(&calls[2], &pieces));
    for (int i = 0; i < 3; i++)
        scratch_dispose(&calls[i]);
    cr_expect_eq(atomic_load(&quota.used_bytes), 0);
}
