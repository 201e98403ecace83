#!/usr/bin/env python3
"""Writes the golden renderings that the tests of models/chat compare with.

    make_goldens.py REAL_DIR ENGINE_DIR

renders with Python's jinja2, set up as transformers sets it up. REAL_DIR holds the unpacked npm
packages as gemma3/package and qwen3/package; ENGINE_DIR is the Go module of the template engine,
whose testdata/templates has the templates of further models. Made with transformers 5.24.0 and
jinja2 3.1.6.
"""
import datetime, hashlib, itertools, json, pathlib, sys
import transformers.utils.chat_template_utils as hf

HERE = pathlib.Path(__file__).parent
NOW = datetime.datetime(2026, 3, 5, 7, 8, 9)


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


hf.datetime = Clock


def render(template, messages, generation=True, **values):
    try:
        compiled = hf._compile_jinja_template(template)
        text = compiled.render(messages=messages, tools=None, documents=None,
                               add_generation_prompt=generation, **values)
        return {"text": text}
    except Exception as e:
        return {"error": type(e).__name__ + ": " + str(e)}


def turns(*texts, system=None):
    out = [{"role": "system", "content": system}] if system is not None else []
    for text, role in zip(texts, itertools.cycle(["user", "assistant"])):
        out.append({"role": role, "content": text})
    return out


CONVERSATIONS = [
    turns("Hi"),
    turns("Hi", system="Be brief."),
    turns("Hi", "Hello!", "And again?"),
    turns("Hi", "Hello!", "And again?", system="You are a pirate.\nSpeak so."),
    turns("1", "2", "3", "4", "5"),
    turns("  leading and trailing  \n"),
    turns("\n\nnewlines\n\n", "\n\nanswer\n\n", "\n\nagain\n\n"),
    turns("   "),
    turns(""),
    turns("", "", "x"),
    turns("Why?", "<think>\nbecause\nit is so\n</think>\n\nIt is.", "Sure?"),
    turns("Why?", "<think>\n\n</think>\n\nIt is.", "Sure?", system="s"),
    turns("Why?", "half a thought</think>rest", "ok"),
    turns("Why?", "<think>a</think>b<think>c</think>d", "ok"),
    turns("Why?", "<think>never closed", "ok"),
    turns("Why?", "<think>\nlast turn is the assistant's\n</think>\n\nanswer"),
    turns("Why?", "plain last"),
    turns("quotes ' \" back\\slash {{ braces }} {% tags %} {# c #}"),
    turns("Привет, 你好, 안녕 👩‍👩‍👧 é e\u0301 \u3000wide\u3000"),
    turns("\u3000wide ends\u3000", "\u00a0nbsp\u00a0", "\u2003em\u2003"),
    turns("tab\tand\x0bvt\x0cff\x1cfs", "x", "\x1c ends \x1d"),
    turns("<tool_response>not a tool</tool_response>"),
    turns("<tool_response>open only", "a", "</tool_response>"),
    turns("a", "b", "<tool_response>x</tool_response>", "<think>t</think>c", "d"),
    turns("code:\n```go\nfunc main() {}\n```\n", "```\n<b>&amp;</b>\n```", "thanks"),
    turns("long " * 300),
    [{"role": "user", "content": "one"}, {"role": "user", "content": "two"}],
    [{"role": "assistant", "content": "I start"}, {"role": "user", "content": "ok"}],
    [{"role": "system", "content": "only system"}],
    [{"role": "user", "content": "a"}, {"role": "system", "content": "late"}, {"role": "user", "content": "b"}],
    [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "assistant", "content": "c"}],
    [{"role": "tool", "content": "42"}, {"role": "user", "content": "so?"}],
]

M = turns("u0", "a1", "u2", system="S")
ITEM = '{"b": "한국 <a> & \'q\' \\"d\\" /slash\\u2028", "a": [1, 2.5, 1e20, 1e-7, true, null, {}], "c": {"z": 1, "y": []}}'
MINI = [
    # reversed lists, slices, loop controls
    "{% for m in messages[::-1] %}{{ m.role }},{% endfor %}",
    "{{ 'héllo'[::-1] }}|{{ 'abcdef'[1:4] }}|{{ 'abcdef'[-2:] }}|{{ 'abcdef'[::2] }}|{{ messages[1:]|length }}|{{ messages[:-1]|length }}",
    "{% for m in messages %}{% if m.role == 'assistant' %}{% break %}{% endif %}{{ m.content }} {% endfor %}",
    "{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m.content }} {% endfor %}",
    "{% for m in messages if m.role != 'system' %}{{ loop.index }}/{{ loop.length }}{{ m.content }}{% if not loop.last %}-{% endif %}{% else %}none{% endfor %}",
    "{% for m in [] %}x{% else %}none{% endfor %}",
    # namespaces and scopes
    "{% set ns = namespace(n=0, s='') %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% set ns.s = ns.s ~ m.role[0] %}{% endfor %}{{ ns.n }}{{ ns.s }}",
    "{% set x = 1 %}{% for m in messages %}{{ x }}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}",
    "{% for m in messages %}{% if loop.first %}{% set y = 'set' %}{% endif %}[{{ y }}{{ y is defined }}]{% endfor %}",
    "{% for m in messages %}{% for n in messages %}{% set z = loop.index %}{% endfor %}{{ z is defined }}{% endfor %}",
    "{% for m in messages %}{% set m = m.role %}{{ m }}{% endfor %}",
    "{% set b %}block {{ messages|length }}\n{% endset %}[{{ b }}]",
    "{% if true %}{% set q = 'seen' %}{% endif %}{{ q }}",
    # macros
    "{% macro f(a, b='d') %}{{ a }}-{{ b }};{% endmacro %}{{ f(1) }}{{ f(1, 2) }}{{ f(b=3, a=4) }}",
    "{% macro g() %}g{% endmacro %}{{ g() }}{{ g() }}",
    "{% macro down(n) %}{{ n }}{% if n > 0 %}{{ down(n - 1) }}{% endif %}{% endmacro %}{{ down(5) }}",
    "{% macro wrap() %}<{{ caller() }}>{% endmacro %}{% call wrap() %}in{% endcall %}",
    # white space control
    "a\n  {% if true %}  \n  b\n  {% endif %}\nc\n",
    "a\n  {%- if true -%}  \n  b\n  {%- endif -%}\nc\n",
    "a\n  {%+ if true %}  \n  b\n  {%+ endif +%}\nc\n",
    "  {% if true %}x{% endif %}  \n  {{ 1 }}  \n",
    "{{ 1 }}  {% if true %}  {{ 2 }}  {% endif %}  {{ 3 }}",
    "x {{ 'a' }}{%- if true -%}  y  {%- endif -%}{{ 'b' }} z",
    "one \n {{ 'a' }}{{- 'b' -}}{{ 'c' }} \n two",
    "a {# c #} b\n  {# line #}\nd {#- trim -#} e\n{#+ keep +#}\nf",
    "  {# first #}\nx",
    "\n\n{% if true %}\n\n\nx\n{% endif %}\n\n\n",
    "{% raw %} {{ not }} {% if %} {# x #} {% endraw %}\ny",
    "a  {%- raw -%}  {{ b }}  {%- endraw -%}  c",
    "line\r\n{% if true %}\r\nx\r\n{% endif %}\r\ny\r\n",
    "{{ 'a\nb' }}\n",
    "text with 'quotes' \\n and \\ backslash {{ '\\\\n \\n \\t \\x41 \\u00e9 \\' \" \\q' }}",
    "{%if true%}tight{%else%}no{%endif%}{{1}}{{-2-}}{{3}}",
    "a\u00a0\n\u00a0 {%- if true %}b{% endif %}",
    "   \u3000{% if true %}b{% endif %}\n \u3000 {% if true %}c{% endif %}",
    # strings
    "{{ 'a</think>b</think>c'.split('</think>')[-1] }}|{{ 'a-b-c'.split('-', 1)[1] }}|{{ 'a-b-c'.rsplit('-', 1)[0] }}",
    "{{ ' x '.strip() }}|{{ 'xxaxx'.strip('x') }}|{{ '\\n\\nq\\n'.lstrip('\\n') }}|{{ 'q \\n'.rstrip() }}|{{ '\u3000 w \u3000'.lstrip() }}|{{ '  t\u3000'|trim }}|{{ 'xtx'|trim('x') }}",
    "{{ 'a b  c'.split() }}",
    "{{ 'prefix-x'.removeprefix('prefix-') }}{{ 'x.md'.removesuffix('.md') }}",
    "{{ 'Hello'.startswith('He') and 'Hello'.endswith('lo') }}{{ 'ell' in 'Hello' }}{{ 'z' not in 'Hello' }}",
    "{{ 'abc'|upper }}{{ 'ABC'|lower }}{{ 'a b'|title }}{{ 'aXbX'|replace('X', '-') }}{{ 'abc'|length }}",
    "{{ 'a' ~ 1 ~ true }}|{{ none }}|{{ 4 / 2 }}|{{ 2.50 }}|{{ 'a' + 'b' }}|{{ 'ab' * 3 }}",
    "{{ messages|map(attribute='role')|join(', ') }}|{{ messages|selectattr('role', 'equalto', 'user')|list|length }}|{{ messages|rejectattr('role', 'eq', 'user')|list|length }}",
    "{{ undefined_thing }}|{{ undefined_thing is defined }}|{{ messages[0].nothing is defined }}|{{ messages[0].nothing|default('d') }}|{{ messages[0]['role'] }}",
    "{{ 'x' if false }}|{{ 'x' if true else 'y' }}|{{ 7 // 2 }}|{{ 7 % 3 }}|{{ 1 == 1.0 }}|{{ 2 > 1 and not false }}",
    "{{ {'a': {'b': 1}}['a']['b'] }}|{{ {'a': {'b': {'c': 2}}} | tojson }}",
    "{{ messages[0] is mapping }}{{ messages is sequence }}{{ messages[0].content is string }}{{ none is none }}{{ tools is none }}{{ tools is defined }}",
    "{% if tools %}t{% else %}no tools{% endif %}{% if add_generation_prompt %}go{% endif %}{{ enable_thinking }}",
    # JSON and time
    "{{ item|tojson }}",
    "{{ item | tojson(indent=2) }}",
    "{{ item|tojson(indent=4, sort_keys=true) }}",
    "{{ item|tojson(ensure_ascii=true) }}",
    "{{ item|tojson(separators=(',', ':')) }}",
    "{{ '\\\\ \" \\n \u2028 \x7f é </script>'|tojson }}{{ messages|tojson }}",
    "{{ strftime_now('%d %b %Y, %H:%M:%S %B %A %a %I %p %j %y %% %-d/%-m %-I') }}",
    # refusals
    "ok\n{% for m in messages %}\n{% if m.role == 'system' %}\n{{ raise_exception('No system role, please') }}\n{% endif %}\n{% endfor %}",
    "{{ raise_exception('') }}",
    "{% generation %}g{% endgeneration %}",
    "{{ bos_token }}{{ eos_token }}{{ pad_token }}",
]


def main(real, engine):
    item = json.loads(ITEM)
    mini = []
    for template in MINI:
        values = {"item": item, "bos_token": "<s>", "eos_token": "</s>", "enable_thinking": False}
        mini.append({"template": template, "messages": M, **render(template, M, **values)})
    dump("mini.json", {"item": ITEM, "cases": mini})

    demo = HERE / "../../demo/pair/target"
    sources = {
        "demo": (json.loads((demo / "tokenizer_config.json").read_text()), (demo / "chat_template.jinja").read_text()),
    }
    for name in ("gemma3", "qwen3"):
        config = json.loads((real / name / "package/models/tokenizer_config.json").read_text())
        sources[name] = (config, config["chat_template"])
    for name, (config, template) in sources.items():
        cases = []
        values = {k: v for k, v in config.items() if k.endswith("_token") and isinstance(v, str)}
        for messages in CONVERSATIONS:
            for generation in (True, False):
                for thinking in ((False, True) if name == "qwen3" and generation else (False,)):
                    got = render(template, messages, generation, enable_thinking=thinking, **values)
                    cases.append({"messages": messages, "generation": generation, "thinking": thinking, **got})
        dump(f"{name}.json", cases)


    others = {}
    for path in sorted((engine / "testdata/templates").iterdir()):
        template, cases = path.read_text(), []
        values = {"bos_token": "<bos>", "eos_token": "<eos>"}
        for messages in CONVERSATIONS:
            for thinking in (False, True):
                got = render(template, messages, True, enable_thinking=thinking, **values)
                if "text" in got:
                    text = got.pop("text")
                    got["sha"] = hashlib.sha256(text.encode()).hexdigest()[:16]
                    if FULL:
                        got["text"] = text
                elif not got["error"].startswith("TemplateError: "):
                    got["error"] = "undefined"  # the template reads what is not there
                cases.append(got)
        others[path.name] = cases
    dump("others.json", {"conversations": CONVERSATIONS, "templates": others})


FULL = len(sys.argv) > 3


def dump(name, data):
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    text = text.replace('],"', '],\n"').replace('},{"template"', '},\n{"template"').replace('},{"messages"', '},\n{"messages"')
    (HERE / name).write_text(text + "\n")


main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
