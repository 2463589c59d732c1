"""Builds many mutants into one program, so that each costs one run of the tests and not one build.

    mutants_in_one.py conditions FILE...      print a list: every condition of these files, turned round
    mutants_in_one.py run TREE LIST VERDICTS  weave LIST into the sources of TREE, build its tests, run them once per mutant

LIST has the form of `cargo mutants --list --json`. A mutant is chosen at run time by VOXGATE_MUTANT=number. `unviable`: it does not
build; what stands in a constant is built for itself at the end. Options of `run`: `--long` (survivors meet the random
histories too), `--first FILTER` (tests that are run before all others), `--explained FILE` (survivors with a reason; any other is
told and ends with status 1). A mutant that VERDICTS calls killed or unviable stays so while the text of its function is the same: it goes on
where it was, and what was changed is asked again. Without VERDICTS everything is.
"""

import hashlib, json, os, re, shutil, subprocess, sys, threading, time
import tree_sitter_rust
from tree_sitter import Language, Parser

PARSER = Parser(Language(tree_sitter_rust.language()))
ON = "crate::mutant::on(%d)"
CHOSEN = """
/// Which mutant this run is.
pub(crate) mod mutant {
    static CHOSEN: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    #[inline(never)]
    pub(crate) fn on(number: u32) -> bool {
        *CHOSEN.get_or_init(|| std::env::var("VOXGATE_MUTANT").ok().and_then(|n| n.parse().ok()).unwrap_or(0)) == number
    }
}
"""
# What cargo-mutants makes of an operator.
FLIPS = {"==": ["!="], "!=": ["=="], "&&": ["||"], "||": ["&&"], "<": ["==", ">", "<="], ">": ["==", "<", ">="], "<=": [">"], ">=": ["<"]}


# Functions that constants need; a mutant in them cannot be chosen while the program runs.
APART = set()


class Source:
    def __init__(self, path):
        self.path, self.text = path, open(path, "rb").read()
        self.tree = PARSER.parse(self.text)
        self.lines = [0]
        for line in self.text.split(b"\n"):
            self.lines.append(self.lines[-1] + len(line) + 1)

    def offset(self, at):
        """The byte of a line and a column, both counted from 1, the column in characters."""
        start = self.lines[at["line"] - 1]
        line = self.text[start:self.lines[at["line"]]].decode()
        return start + len(line[:at["column"] - 1].encode())

    def place(self, offset):
        line = self.text.count(b"\n", 0, offset)
        start = self.lines[line]
        return {"line": line + 1, "column": len(self.text[start:offset].decode()) + 1}


def tested(node):
    """Whether a node lies in a module of tests."""
    while node:
        before = node.prev_named_sibling
        if node.type in ("mod_item", "function_item"):
            while before and before.type == "attribute_item":
                if b"test" in before.text:
                    return True
                before = before.prev_named_sibling
        node = node.parent
    return False


def above(node, kind):
    while node and node.type != kind:
        node = node.parent
    return node


def walk(node):
    yield node
    for child in node.children:
        yield from walk(child)


def in_let(node):
    """A condition with `let` in it cannot be put into brackets."""
    return any(n.type in ("let_condition", "let_chain") for n in walk(node)) if node.type != "closure_expression" else False


def conditions(paths):
    found = []
    for path in paths:
        source = Source(path)
        for node in walk(source.tree.root_node):
            if above(node, "function_item") is None or tested(node):
                continue
            name = above(node, "function_item").child_by_field_name("name").text.decode()
            changes = []
            if node.type == "binary_expression":
                sign = node.child_by_field_name("operator")
                changes = [(sign, "BinaryOperator", to, f"replace {sign.text.decode()} with {to} in {name}") for to in FLIPS.get(sign.text.decode(), [])]
            elif node.type == "unary_expression" and node.children[0].text == b"!":
                changes = [(node.children[0], "UnaryOperator", "", f"delete ! in {name}")]
            elif node.type == "match_pattern" and node.child_by_field_name("condition"):
                guard = node.child_by_field_name("condition")
                changes = [(guard, "MatchArmGuard", to, f"replace match guard {' '.join(guard.text.decode().split())} with {to} in {name}") for to in ("true", "false")]
            elif node.type in ("if_expression", "while_expression"):
                condition = node.child_by_field_name("condition")
                parts = [c for c in condition.children if c.is_named] if condition.type == "let_chain" else [condition]
                changes = [(part, "Condition", "!", f"turn round {' '.join(part.text.decode().split())} in {name}") for part in parts if not in_let(part)]
            for at, genre, to, what in changes:
                start, end = source.place(at.start_byte), source.place(at.end_byte)
                found.append({"file": path, "genre": genre, "replacement": to, "span": {"start": start, "end": end},
                              "name": f"{path}:{start['line']}:{start['column']}: {what}"})
    return found


class Weaver:
    """Rewrites one file. `edits` maps a node's id to what is done to it; a mutant is alone at work, so the branch it
    takes holds the plain text of what lies inside."""

    def __init__(self, source):
        self.source, self.edits, self.deconst = source, {}, set()

    def add(self, number, mutant):
        s, root = self.source, self.source.tree.root_node
        start, end = s.offset(mutant["span"]["start"]), s.offset(mutant["span"]["end"])
        genre, to = mutant["genre"], mutant["replacement"]
        node = root.descendant_for_byte_range(start, end)
        holder = above(node, "function_item")
        if holder is None or holder.child_by_field_name("name").text.decode() in APART:
            return "apart"
        self.deconst.add(holder.id)
        if genre == "FnValue":
            body = node if node.type == "block" else above(node, "block")
            while body and body.parent.type != "function_item":
                body = above(body.parent, "block")
            if body is None:
                return "apart"
            self.edits.setdefault(("body", body.id), []).append((number, to))
        elif genre in ("BinaryOperator", "UnaryOperator"):
            whole = node.parent
            if genre == "BinaryOperator" and whole.type not in ("binary_expression", "compound_assignment_expr"):
                return "apart"
            if genre == "UnaryOperator" and whole.type != "unary_expression":
                return "apart"
            if whole.type == "binary_expression" and (in_let(whole) or whole.parent.type == "let_chain" and any(in_let(c) for c in whole.children)):
                return "unviable"
            self.edits.setdefault(("op", whole.id), []).append((number, node, to))
        elif genre == "Condition":
            while node.parent.start_byte == start and node.parent.end_byte == end:
                node = node.parent
            self.edits.setdefault(("turn", node.id), []).append(number)
        elif genre in ("MatchArmGuard", "MatchArm"):
            pattern = above(node, "match_pattern") if genre == "MatchArmGuard" else None
            if genre == "MatchArm":
                arm = node if node.type == "match_arm" else above(node, "match_arm")
                pattern = arm.child_by_field_name("pattern")
                to = "false"
            guard = pattern.child_by_field_name("condition")
            if guard is not None and in_let(guard):
                return "apart"
            self.edits.setdefault(("arm", pattern.id), []).append((number, to))
        else:
            return "apart"
        return "woven"

    def text(self, node):
        return self.source.text[node.start_byte:node.end_byte].decode()

    def render(self, node):
        """The woven text of a node; marks of where a mutant stands are added by number as comments."""
        out = self.inner(node)
        for number, sign, to in self.edits.get(("op", node.id), []):
            cut, stop = (sign.start_byte - node.start_byte), (sign.end_byte - node.start_byte)
            raw = self.source.text[node.start_byte:node.end_byte]
            changed = (raw[:cut] + to.encode() + raw[stop:]).decode()
            brace = f"if {ON % number} {{ /*M{number}*/ {changed} /*W{number}*/ }} else {{ {out} }}"
            out = brace if node.type == "compound_assignment_expr" else f"({brace})"
        for number in self.edits.get(("turn", node.id), []):
            out = f"(/*M{number}*/ {ON % number} /*W{number}*/ != ({out}))"
        return out

    def inner(self, node):
        if not node.children or node.type in ("macro_invocation", "token_tree"):
            return self.text(node)
        if node.type == "match_pattern" and ("arm", node.id) in self.edits:
            guard = node.child_by_field_name("condition")
            pattern = self.source.text[node.start_byte:(guard.prev_sibling.start_byte if guard else node.end_byte)].decode()
            condition = f"({self.render(guard)})" if guard else "true"
            for number, to in self.edits[("arm", node.id)]:
                condition = f"(/*M{number}*/ {ON % number} /*W{number}*/ || {condition})" if to == "true" else f"(/*M{number}*/ !{ON % number} /*W{number}*/ && {condition})"
            return f"{pattern} if {condition}"
        parts, at = [], node.start_byte
        for child in node.children:
            parts.append(self.source.text[at:child.start_byte].decode())
            piece = self.render(child)
            if node.id in self.deconst and child.type == "function_modifiers":
                piece = re.sub(r"\bconst\b", "", piece)
            parts.append(piece)
            at = child.end_byte
        parts.append(self.source.text[at:node.end_byte].decode())
        out = "".join(parts)
        if node.type == "block" and ("body", node.id) in self.edits:
            early = "".join(f"if {ON % n} {{ /*M{n}*/ return {to}; /*W{n}*/ }} " for n, to in self.edits[("body", node.id)])
            out = "{ " + early + out[1:]
        return out


def weave(tree, mutants, skip=()):
    """Weaves all mutants but those of `skip`; answers the verdict of each."""
    verdicts, weavers = {}, {}
    for number, mutant in enumerate(mutants, 1):
        if number in skip:
            continue
        weaver = weavers.get(mutant["file"])
        if weaver is None:
            weaver = weavers[mutant["file"]] = Weaver(Source(mutant["file"]))
        verdicts[number] = weaver.add(number, mutant)
    for file, weaver in weavers.items():
        with open(os.path.join(tree, file), "w") as out:
            out.write(weaver.render(weaver.source.tree.root_node))
    lib = open("src/lib.rs").read()
    with open(os.path.join(tree, "src/lib.rs"), "w") as out:
        out.write(lib + CHOSEN)
    return verdicts


def blamed(tree, message, marks):
    """The numbers of the mutants whose text a compiler's message points into."""
    numbers = set()
    for span in message.get("spans", []):
        file = span["file_name"]
        if file not in marks:
            text = open(os.path.join(tree, file), "rb").read()
            marks[file] = [(m.start(), text.find(b"/*W" + m.group(1) + b"*/"), int(m.group(1))) for m in re.finditer(rb"/\*M(\d+)\*/", text)]
        inside = [(end - start, n) for start, end, n in marks[file] if start <= span["byte_start"] <= end]
        if inside:
            numbers.add(min(inside)[1])
    return numbers


def arms_of(tree, message, arms):
    """The mutants of arms in a match that lacks one: an arm under a condition covers nothing."""
    if (message.get("code") or {}).get("code") != "E0004":
        return set()
    span = message["spans"][0]
    text = open(os.path.join(tree, span["file_name"]), "rb").read()[span["byte_end"]:]
    depth = 0
    for at, byte in enumerate(text):
        depth += (byte == 123) - (byte == 125)
        if byte == 125 and depth == 0:
            break
    return {int(n) for n in re.findall(rb"/\*M(\d+)\*/", text[:at])} & arms


def tests_of(tree):
    """Builds the tests; answers what cargo said, its messages, and the program (`None`: it does not build)."""
    out = subprocess.run(["cargo", "test", "--no-default-features", "--lib", "--no-run", "--message-format=json"], cwd=tree, capture_output=True, text=True)
    entries = [json.loads(line) for line in out.stdout.splitlines()]
    programs = [e["executable"] for e in entries if e.get("reason") == "compiler-artifact" and e.get("executable")]
    return out, entries, programs[-1] if out.returncode == 0 else None


def build(tree, arms):
    """Builds the woven tests; answers the program, or the numbers of those that are in the way."""
    out, entries, program = tests_of(tree)
    wrong, marks, first = set(), {}, None
    for entry in entries:
        if entry.get("reason") == "compiler-message" and entry["message"]["level"] == "error":
            first = first or entry["message"].get("rendered")
            wrong |= blamed(tree, entry["message"], marks) or arms_of(tree, entry["message"], arms)
    needed = set(re.findall(r"cannot call non-const (?:associated )?(?:function|method) `(?:[^`]*::)?(\w+)`", out.stdout)) - {"on"} - APART
    if needed:
        APART.update(needed)
        return None, set()
    if out.returncode and not wrong:
        sys.exit(f"the woven tree does not build, and no mutant is to blame:\n{first or out.stderr[-3000:]}")
    return program, wrong


# Short first: nearly every mutant is noticed by the tests by name, and the random histories are the long way to the same.
LONG = ["ten_thousand", "every_state", "eight_hours", "media::", "props::", "lockstep", "model::"]
SLOW = ["field_case_29_consent", "field_case_9_", "field_case_5_"]
SHORT = [word for name in LONG + SLOW for word in ("--skip", name)]


def red(program, tree, number, args, limit):
    """The first test that is red under this mutant; the rest is not waited for."""
    env = dict(os.environ, VOXGATE_MUTANT=str(number), RUST_BACKTRACE="0")
    run = subprocess.Popen([program, *args], cwd=tree, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    late = threading.Event()
    watch = threading.Timer(limit, lambda: (late.set(), run.kill()))
    watch.start()
    failed = next((m.group(1) for m in map(re.compile(r"^test (\S+) .*FAILED$").match, run.stdout) if m), None)
    watch.cancel()
    if failed:
        run.kill()
    run.stdout.close()
    ended = run.wait()
    if failed or ended == 0:
        return failed
    return "a test that never ended" if late.is_set() else "the tests stopped"


def option(name):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else None


def placeless(name):
    """The name of a mutant without line and column."""
    return re.sub(r":\d+:\d+: ", ": ", name)


def mark_of(source, mutant):
    """What a mutant changes, wherever in its file that stands: the text of its function, and the place in it."""
    start, end = source.offset(mutant["span"]["start"]), source.offset(mutant["span"]["end"])
    node = source.tree.root_node.descendant_for_byte_range(start, end)
    holder = above(node, "function_item") or above(node, "const_item") or node
    told = f"{placeless(mutant['name'])}:{start - holder.start_byte}:".encode() + holder.text
    return hashlib.sha256(told).hexdigest()[:16]


def main():
    if sys.argv[1] == "conditions":
        print(json.dumps(conditions(sys.argv[2:]), indent=1))
        return
    tree, given, into = sys.argv[2:5]
    mutants = json.load(open(given))
    explained = {line.strip() for line in open(option("--explained"))} if option("--explained") else set()
    first = option("--first")
    unviable, known = set(), {}
    if os.path.exists(into):
        known = {entry.get("of"): entry for entry in json.load(open(into))["mutants"] if entry["verdict"] in ("killed", "unviable")}
    sources = {mutant["file"]: Source(mutant["file"]) for mutant in mutants}
    marks = [mark_of(sources[mutant["file"]], mutant) for mutant in mutants]
    unviable |= {number for number, mark in enumerate(marks, 1) if known.get(mark, {}).get("verdict") == "unviable"}
    while True:
        verdicts = weave(tree, mutants, unviable)
        program, wrong = build(tree, {n for n, m in enumerate(mutants, 1) if m["genre"] == "MatchArm"})
        if program:
            break
        unviable |= wrong
    began = time.time()
    plain = red(program, tree, 0, SHORT, 600)
    if plain:
        sys.exit(f"red without a mutant: {plain}")
    usual = time.time() - began
    result, open_ones = [], []

    def keep():
        counts = {}
        for entry in result:
            counts[entry["verdict"]] = counts.get(entry["verdict"], 0) + 1
        # What was known of those that are not reached yet is kept for another run.
        ahead = [{**known[mark], "name": mutant["name"]} for mark, mutant in list(zip(marks, mutants))[len(result):] if mark in known]
        with open(into + ".new", "w") as out:
            json.dump({"counts": counts, "mutants": result + ahead}, out, indent=1)
        os.replace(into + ".new", into)
        return counts

    def noticed(program, number, first=None):
        """What is red under this mutant, the quick tests before the slow ones."""
        return (first and red(program, tree, number, [first], 20 + 10 * usual)) or red(program, tree, number, SHORT, 20 + 10 * usual) or red(program, tree, number, SLOW, 20 + 20 * usual)

    def judge(entry, by):
        entry["verdict"] = "killed" if by else "explained" if placeless(entry["name"]) in explained else "survived"
        if by:
            entry["by"] = by
        elif entry["verdict"] == "survived":
            open_ones.append(entry["name"])
            print(f"survived: {entry['name']}", flush=True)

    for number, mutant in enumerate(mutants, 1):
        verdict = "unviable" if number in unviable else verdicts[number]
        mark = marks[number - 1]
        entry = {"name": mutant["name"], "verdict": verdict, "of": mark}
        if known.get(mark, {}).get("verdict") == "killed":
            entry = {**known[mark], "name": mutant["name"]}
        elif verdict == "woven":
            by = noticed(program, number, first)
            if by is None and "--long" in sys.argv:
                by = red(program, tree, number, LONG, 600)
            judge(entry, by)
        result.append(entry)
        if number % 50 == 0:
            print(f"{number} of {len(mutants)}: {keep()}", flush=True)
    # What stands in a constant is built for itself, one after the other.
    files = {mutant["file"] for mutant in mutants} | {"src/lib.rs"}
    for file in files:
        shutil.copyfile(file, os.path.join(tree, file))
    for entry, mutant in zip(result, mutants):
        if entry["verdict"] != "apart" or "--no-apart" in sys.argv:
            continue
        source = Source(mutant["file"])
        start, end = source.offset(mutant["span"]["start"]), source.offset(mutant["span"]["end"])
        with open(os.path.join(tree, mutant["file"]), "wb") as out:
            out.write(source.text[:start] + mutant["replacement"].encode() + source.text[end:])
        own = tests_of(tree)[2]
        if own is None:
            entry["verdict"] = "unviable"
        else:
            judge(entry, noticed(own, 0))
        shutil.copyfile(mutant["file"], os.path.join(tree, mutant["file"]))
    print(f"mutants: {keep()}")
    sys.exit(1 if open_ones else 0)


main()
