/* received: what a curl client has received, as text; what is too long is cut.
 *
 *     struct received received = {.len = 0};
 *     curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, received_take);
 *     curl_easy_setopt(easy, CURLOPT_WRITEDATA, &received);
 */
#ifndef TESTS_SUPPORT_RECEIVED_H
#define TESTS_SUPPORT_RECEIVED_H

#include <string.h>

struct received {
    char bytes[65536];
    size_t len;
};

static inline size_t received_take(char *bytes, size_t size, size_t count, void *context)
{
    struct received *received = context;
    size_t room = sizeof received->bytes - 1 - received->len;
    size_t taken = size * count < room ? size * count : room;

    memcpy(received->bytes + received->len, bytes, taken);
    received->len += taken;
    received->bytes[received->len] = '\0';
    return size * count;
}

#endif
