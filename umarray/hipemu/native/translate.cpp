// A scan of the text, not a parser: comments and literals are blanked first, then braces are counted to know what lies
// at namespace scope. What it looks for is rare enough in other places for that to do; what it misses fails loudly, as
// an unknown kernel name.
#include "translate.h"

#include <algorithm>
#include <cctype>
#include <regex>

namespace hipemu {
namespace {

bool word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Comments and the insides of literals become blanks, so that positions stay the same.
std::string blank(const std::string& text) {
  std::string out = text;
  size_t i = 0;
  const auto hide = [&](size_t from, size_t to) {
    for (size_t k = from; k < to && k < out.size(); ++k) {
      if (out[k] != '\n') out[k] = ' ';
    }
  };
  while (i < text.size()) {
    if (text.compare(i, 2, "//") == 0) {
      size_t end = text.find('\n', i);
      if (end == std::string::npos) end = text.size();
      hide(i, end);
      i = end;
    } else if (text.compare(i, 2, "/*") == 0) {
      size_t end = text.find("*/", i + 2);
      end = end == std::string::npos ? text.size() : end + 2;
      hide(i, end);
      i = end;
    } else if (text[i] == '"' || (text[i] == '\'' && (i == 0 || !word(text[i - 1])))) {
      const char quote = text[i];
      size_t end = i + 1;
      while (end < text.size() && text[end] != quote && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
      // `extern "C"` must stay readable.
      if (!(quote == '"' && text.compare(i, 3, "\"C\"") == 0)) hide(i + 1, end);
      i = end + 1;
    } else {
      ++i;
    }
  }
  return out;
}

size_t skip_space(const std::string& text, size_t i) {
  while (i < text.size() && std::isspace(static_cast<unsigned char>(text[i]))) ++i;
  return i;
}

size_t find_word(const std::string& text, const std::string& name, size_t from) {
  for (size_t at = text.find(name, from); at != std::string::npos; at = text.find(name, at + 1)) {
    const bool left = at == 0 || !word(text[at - 1]);
    const bool right = at + name.size() >= text.size() || !word(text[at + name.size()]);
    if (left && right) return at;
  }
  return std::string::npos;
}

size_t closing(const std::string& text, size_t at, char open, char close) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == open) ++depth;
    if (text[at] == close && --depth == 0) return at;
  }
  return std::string::npos;
}

// Braces that surround each position, those of `extern "C" {` not counted.
std::vector<int> depths(const std::string& text) {
  std::vector<int> depth(text.size() + 1);
  std::vector<bool> counted;
  int now = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{') {
      size_t before = i;
      while (before > 0 && std::isspace(static_cast<unsigned char>(text[before - 1]))) --before;
      const bool language = before >= 3 && text.compare(before - 3, 3, "\"C\"") == 0;
      counted.push_back(!language);
      now += !language;
    } else if (text[i] == '}' && !counted.empty()) {
      now -= counted.back();
      counted.pop_back();
    }
    depth[i] = now;
  }
  depth[text.size()] = now;
  return depth;
}

struct Found {
  std::string name;
  size_t start = 0;  // of __global__
  size_t body = 0;   // of its brace, or npos for a declaration
};

std::vector<Found> find_kernels(const std::string& text, const std::vector<int>& depth) {
  std::vector<Found> kernels;
  for (size_t at = find_word(text, "__global__", 0); at != std::string::npos;
       at = find_word(text, "__global__", at + 1)) {
    if (depth[at] != 0) continue;
    // A line that defines a macro is not a kernel.
    const size_t line = text.rfind('\n', at) + 1;
    if (text[skip_space(text, line)] == '#') continue;
    size_t statement = text.find_last_of(";}", at);
    statement = statement == std::string::npos ? 0 : statement + 1;
    const size_t pattern = find_word(text, "template", statement);
    if (pattern != std::string::npos && pattern < at) continue;
    // The name is the word before the first parenthesis that is not an attribute's.
    size_t i = at + 10;
    Found found;
    found.start = at;
    std::string last;
    while (i < text.size() && text[i] != ';' && text[i] != '{') {
      if (word(text[i])) {
        const size_t from = i;
        while (i < text.size() && word(text[i])) ++i;
        last = text.substr(from, i - from);
      } else if (text[i] == '(') {
        const size_t end = closing(text, i, '(', ')');
        if (end == std::string::npos) break;
        const bool attribute = last == "__launch_bounds__" || last == "__attribute__" || last == "__align__" ||
                               last.empty() || last == "amdgpu_flat_work_group_size";
        i = end + 1;
        if (!attribute) {
          found.name = last;
          break;
        }
      } else {
        ++i;
      }
    }
    if (found.name.empty()) continue;
    i = skip_space(text, i);
    found.body = i < text.size() && text[i] == '{' ? i : std::string::npos;
    const auto same = [&](const Found& other) { return other.name == found.name; };
    const auto known = std::find_if(kernels.begin(), kernels.end(), same);
    if (known == kernels.end()) {
      kernels.push_back(found);
    } else if (known->body == std::string::npos) {
      known->body = found.body;
    }
  }
  return kernels;
}

bool has_any(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* w) { return find_word(text, w, 0) != std::string::npos; });
}

// Whether running the one kernel as a single thread over the whole range gives the same: its body is a CUPY_FOR loop
// with nothing of effect around it, and nothing in the source asks which thread it is or waits for another.
bool is_flat(const std::string& text, const std::vector<Found>& kernels) {
  if (kernels.size() != 1 || kernels[0].body == std::string::npos) return false;
  if (text.find("__shfl") != std::string::npos || text.find("__syncthreads") != std::string::npos) return false;
  if (has_any(text, {"threadIdx", "blockIdx", "blockDim", "gridDim", "__ballot", "__any", "__all", "__syncwarp",
                     "__threadfence_block", "__shared__", "__lane_id", "__activemask", "clock", "clock64"})) {
    return false;
  }
  // One in a function of the preamble is harmless, one in the kernel would end the loop early.
  if (has_any(text.substr(kernels[0].body), {"return", "goto"})) return false;
  const size_t body = kernels[0].body;
  const size_t end = closing(text, body, '{', '}');
  const size_t loop = find_word(text, "CUPY_FOR", body);
  if (end == std::string::npos || loop == std::string::npos || loop > end) return false;
  if (find_word(text, "CUPY_FOR", loop + 1) != std::string::npos) return false;
  std::string before = text.substr(body + 1, loop - body - 1);
  before = std::regex_replace(before, std::regex("#pragma[^\n]*"), "");
  if (before.find_first_of("=[(+-&") != std::string::npos) return false;
  const size_t parenthesis = text.find('(', loop);
  const size_t brace = skip_space(text, closing(text, parenthesis, '(', ')') + 1);
  if (brace >= text.size() || text[brace] != '{') return false;
  const size_t after = closing(text, brace, '{', '}');
  return text.substr(after + 1, end - after - 1).find_first_not_of(" \t\r\n;") == std::string::npos;
}

// extern __shared__ T name[];  ->  a pointer in a function, a stand-in object outside one.
void rewrite_shared(std::string* source, std::string* text) {
  static const std::regex pattern(R"(extern\s+((?:__align__|__attribute__)\s*\([^;]*?\)+\s*)?)"
                                  R"(__shared__\s+([^;\[]+?)\b(\w+)\s*\[\s*\]\s*;)");
  std::smatch match;
  size_t from = 0;
  while (true) {
    const std::string rest = text->substr(from);
    if (!std::regex_search(rest, match, pattern)) return;
    const size_t at = from + static_cast<size_t>(match.position(0));
    const size_t length = static_cast<size_t>(match.length(0));
    std::string type = match[2].str();
    type = std::regex_replace(type, std::regex(R"(__align__\s*\([^)]*\)|__attribute__\s*\(\(.*?\)\)|\bunsigned\s*$)"),
                              "");
    if (match[2].str().find("unsigned") != std::string::npos && type.find_first_not_of(" \t\n") == std::string::npos) {
      type = "unsigned int";
    }
    const std::string name = match[3].str();
    const bool inside = depths(*text)[at] > 0;
    const std::string made = inside ? type + " *" + name + " = (" + type + " *)hipemu_current->dynamic_shared;"
                                    : "static const hipemu_dynamic<" + type + "> " + name + "{};";
    source->replace(at, length, made);
    text->replace(at, length, made);
    from = at + made.size();
  }
}

}  // namespace

Translated translate(const std::string& original, const std::vector<std::string>& expressions) {
  Translated result;
  std::string source = original;
  std::string text = blank(source);
  rewrite_shared(&source, &text);
  const std::vector<Found> kernels = find_kernels(text, depths(text));
  result.flat = expressions.empty() && is_flat(text, kernels);
  if (result.flat) {
    // One thread takes every element: the loop need not ask how many threads there are.
    const size_t line = source.rfind('\n', kernels[0].start);
    source.insert(line == std::string::npos ? 0 : line,
                  "\n#undef CUPY_FOR\n#define CUPY_FOR(i, n) for (ptrdiff_t i = 0; i < (n); ++i)\n");
  }
  source += "\n#line 1 \"hipemu\"\n";
  for (const Found& kernel : kernels) {
    if (kernel.body == std::string::npos) continue;
    result.kernels.push_back(kernel.name);
    source += "HIPEMU_KERNEL(" + kernel.name + ", " + (result.flat ? "1" : "0") + ")\n";
  }
  for (size_t i = 0; i < expressions.size(); ++i) {
    std::string expression = expressions[i];
    const size_t start = expression.find_first_not_of(" \t&");
    expression = start == std::string::npos ? "" : expression.substr(start);
    source += "HIPEMU_EXPRESSION(" + std::to_string(i) + ", " + expression + ")\n";
  }
  result.source = source;
  return result;
}

}  // namespace hipemu
