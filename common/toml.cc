/* toml++ 3.3 asserts what a text can break ("[,a]"), and with NDEBUG assumes it; behind most of its
 * assertions it then reports the error, so they are off, and assumptions with them. */
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <new>
#include <string>
#include <vector>

#include "common/str.h"
#include "common/toml.h"

/* deque and not vector: entries lend pointers into what never moves. */
struct sl_toml {
    std::vector<sl_toml_value> values;
    std::deque<std::string> texts;
    std::deque<std::vector<sl_toml_value>> arrays;
};

static const char *keep(sl_toml *t, std::string s)
{
    t->texts.push_back(std::move(s));
    return t->texts.back().c_str();
}

static sl_toml_value convert(sl_toml *t, const toml::node &node)
{
    sl_toml_value v = {};
    auto at = node.source().begin;

    v.type = SL_TOML_OTHER;
    v.path = "";
    v.line = v.key_line = at.line;
    v.col = v.key_col = at.column;
    if (auto *i = node.as_integer()) {
        v.type = SL_TOML_INT;
        v.i = i->get();
    } else if (auto *r = node.as_floating_point()) {
        v.type = SL_TOML_REAL;
        v.r = r->get();
    } else if (auto *b = node.as_boolean()) {
        v.type = SL_TOML_BOOL;
        v.i = b->get();
    } else if (auto *s = node.as_string()) {
        v.type = SL_TOML_STR;
        v.s = keep(t, s->get());
        v.len = s->get().size();
    } else if (auto *a = node.as_array()) {
        std::vector<sl_toml_value> items;

        for (auto &item : *a)
            items.push_back(convert(t, item));
        v.type = SL_TOML_ARRAY;
        v.len = items.size();
        t->arrays.push_back(std::move(items));
        v.items = t->arrays.back().data();
    } else if (node.is_table()) {
        v.type = SL_TOML_TABLE;
    }
    return v;
}

/* A key that holds a point of its own is quoted, so that it is no path. */
static std::string part(const toml::key &key)
{
    std::string s(key.str());

    return s.find('.') == std::string::npos ? s : "'" + s + "'";
}

static void walk(sl_toml *t, const toml::table &table, const std::string &prefix)
{
    for (auto &&[key, node] : table) {
        std::string path = prefix.empty() ? part(key) : prefix + "." + part(key);
        sl_toml_value v = convert(t, node);

        v.key_line = key.source().begin.line;
        v.key_col = key.source().begin.column;
        v.path = keep(t, path);
        t->values.push_back(v);
        if (auto *sub = node.as_table())
            walk(t, *sub, path);
    }
}

/* By place; a table and its first dotted key share one: the shorter path first. */
static bool before(const sl_toml_value &a, const sl_toml_value &b)
{
    if (a.key_line != b.key_line)
        return a.key_line < b.key_line;
    if (a.key_col != b.key_col)
        return a.key_col < b.key_col;
    return std::strlen(a.path) < std::strlen(b.path);
}

/* How a string that begins at p ends: its quotes, once or three times. */
static std::string quotes(std::string_view p)
{
    bool three = p.size() > 2 && p[1] == p[0] && p[2] == p[0];

    return std::string(three ? 3 : 1, p[0]);
}

/* Behind the string that begins at p: where it ends, or the whole text when it does not. */
static size_t skip_string(std::string_view text, size_t p)
{
    std::string end = quotes(text.substr(p));

    for (p += end.size(); p < text.size(); p++) {
        if (text[p] == '\\' && end[0] == '"')
            p++;
        else if (text.compare(p, end.size(), end) == 0)
            return p + end.size();
        else if (text[p] == '\n' && end.size() == 1)
            return p; /* toml++ says that */
    }
    return text.size();
}

/*
 * The place of a dotted key with more parts than any of ours, npos if there is none. toml++ bounds how
 * deep values nest, but not keys, and walks both by recursion.
 */
static size_t deep_key(std::string_view text)
{
    size_t parts = 0;

    for (size_t p = 0; p < text.size();) {
        if (text[p] == '"' || text[p] == '\'') {
            p = skip_string(text, p);
            continue;
        }
        if (text[p] == '#')
            p = std::min(text.find('\n', p), text.size() - 1);
        if (text[p] == '.' && ++parts > 64)
            return p;
        if (std::strchr("\n=,[]{}", text[p]))
            parts = 0;
        p++;
    }
    return std::string_view::npos;
}

static int check_depth(std::string_view text, const char *name, struct sl_err *err)
{
    size_t at = deep_key(text), line_start;

    if (at == std::string_view::npos)
        return 0;
    line_start = text.rfind('\n', at) + 1; /* npos + 1 is 0 */
    return sl_fail(err, SL_USAGE, "%s:%zu:%zu: a key of more than 64 parts", name,
                   (size_t)std::count(text.begin(), text.begin() + (long)at, '\n') + 1,
                   at - line_start + 1);
}

struct sl_toml *sl_toml_parse(const char *text, size_t n, const char *name, struct sl_err *err)
{
    if (n > (1u << 20)) {
        sl_fail(err, SL_USAGE, "%s:1:1: has %zu bytes; at most 1048576 are read", name, n);
        return nullptr;
    }
    if (check_depth(std::string_view(text, n), name, err))
        return nullptr;
    toml::parse_result r = toml::parse(std::string_view(text, n), std::string_view(name));
    if (!r) {
        auto at = r.error().source().begin;
        char what[200];

        sl_str_escape(what, sizeof what, std::string(r.error().description()).c_str());
        if (!std::strncmp(what, "Error ", 6))
            what[0] = 'e'; /* our messages begin in lower case */
        sl_fail(err, SL_USAGE, "%s:%u:%u: %s", name, (unsigned)at.line, (unsigned)at.column, what);
        return nullptr;
    }
    sl_toml *t = new (std::nothrow) sl_toml;
    if (!t) {
        sl_fail(err, SL_SYSTEM, "read \"%s\": no memory", name);
        return nullptr;
    }
    walk(t, r.table(), "");
    std::stable_sort(t->values.begin(), t->values.end(), before);
    return t;
}

void sl_toml_destroy(struct sl_toml *t)
{
    delete t;
}

size_t sl_toml_count(const struct sl_toml *t)
{
    return t->values.size();
}

const struct sl_toml_value *sl_toml_at(const struct sl_toml *t, size_t i)
{
    return i < t->values.size() ? &t->values[i] : nullptr;
}

const struct sl_toml_value *sl_toml_find(const struct sl_toml *t, const char *path)
{
    for (auto &v : t->values)
        if (!std::strcmp(v.path, path))
            return &v;
    return nullptr;
}

const char *sl_toml_type_name(enum sl_toml_type type)
{
    switch (type) {
    case SL_TOML_TABLE: return "a table";
    case SL_TOML_INT: return "an integer";
    case SL_TOML_REAL: return "a number";
    case SL_TOML_BOOL: return "a boolean";
    case SL_TOML_STR: return "a string";
    case SL_TOML_ARRAY: return "an array";
    case SL_TOML_OTHER: break;
    }
    return "a date or time";
}
