#include "extender/certificates/hosts.h"

#include <arpa/inet.h>
#include <stdio.h>

size_t host_address(const char *name, unsigned char bytes[16])
{
    if (inet_pton(AF_INET, name, bytes) == 1)
        return 4;
    return inet_pton(AF_INET6, name, bytes) == 1 ? 16 : 0;
}

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* A DNS name: labels of letters, digits and '-', which neither begin nor end with '-'. */
static bool is_dns_name(const char *name)
{
    size_t label = 0;

    if (name[0] == '*' && name[1] == '.')
        name += 2;
    for (const char *at = name; *at != '\0'; at++) {
        bool ends = at[1] == '\0' || at[1] == '.';
        if (*at == '.' ? label == 0
                       : !is_letter_or_digit(*at) && (*at != '-' || label == 0 || ends))
            return false;
        label = *at == '.' ? 0 : label + 1;
        if (label > 63)
            return false;
    }
    return label != 0;
}

static bool has(const struct hosts *hosts, const char *name)
{
    for (size_t i = 0; i < hosts->count; i++)
        if (strcmp(hosts->names[i], name) == 0)
            return true;
    return false;
}

static int add(struct hosts *hosts, const char *name, struct error *err)
{
    if (has(hosts, name))
        return 0;
    if (hosts->count == HOSTS_MAX)
        return error_set(err, ERROR_TOO_BIG, "a certificate is for at most %d names", HOSTS_MAX);
    char *copy = hosts->names[hosts->count++];
    for (size_t i = 0; i < HOST_BYTES && (copy[i] = name[i]) != '\0'; i++)
        if (copy[i] >= 'A' && copy[i] <= 'Z')
            copy[i] = (char)(copy[i] - 'A' + 'a');
    return 0;
}

int hosts_add_address(struct hosts *hosts, const void *bytes, size_t size, struct error *err)
{
    char text[INET6_ADDRSTRLEN];

    if ((size != 4 && size != 16) ||
        inet_ntop(size == 4 ? AF_INET : AF_INET6, bytes, text, sizeof text) == NULL)
        return error_set(err, ERROR_INVALID, "an IP address of %zu bytes", size);
    return add(hosts, text, err);
}

int hosts_add(struct hosts *hosts, const char *name, struct error *err)
{
    unsigned char bytes[16];
    size_t size = host_address(name, bytes);

    if (size != 0)
        return hosts_add_address(hosts, bytes, size, err);
    if (strlen(name) >= HOST_BYTES || !is_dns_name(name))
        return error_set(err, ERROR_INVALID, "%.80s: neither a DNS name nor an IP address", name);
    return add(hosts, name, err);
}

const char *hosts_missing(const struct hosts *hosts, const struct hosts *wanted)
{
    for (size_t i = 0; i < wanted->count; i++)
        if (!has(hosts, wanted->names[i]))
            return wanted->names[i];
    return NULL;
}
