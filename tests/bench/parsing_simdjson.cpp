#include "parsing_simdjson.h"

#include <simdjson.h>

using namespace simdjson;

/* The length of a string; 0: there is none. */
static size_t length_of(simdjson_result<ondemand::value> value)
{
    std::string_view text;
    return value.get_string().get(text) == SUCCESS ? text.size() : 0;
}

size_t parsing_simdjson(const char *text, size_t length, size_t capacity)
{
    static ondemand::parser parser;
    ondemand::document document;
    ondemand::array items;
    size_t count = 0, bytes = 0;

    if (parser.iterate(padded_string_view(text, length, capacity)).get(document) != SUCCESS ||
        document["items"].get_array().get(items) != SUCCESS)
        return 0;
    for (auto item : items) {
        ondemand::object object, part;
        if (item.get_object().get(object) != SUCCESS)
            return 0;
        for (auto field : object) {
            std::string_view key;
            if (field.unescaped_key().get(key) != SUCCESS)
                return 0;
            bool is_meta = key == "metadata", is_spec = key == "spec", is_status = key == "status";
            if ((!is_meta && !is_spec && !is_status) ||
                field.value().get_object().get(part) != SUCCESS)
                continue;
            bytes += is_meta   ? length_of(part["name"]) + length_of(part["uid"])
                     : is_spec ? length_of(part["nodeName"])
                               : length_of(part["phase"]);
        }
        count++;
    }
    return bytes == 0 ? 0 : count;
}
