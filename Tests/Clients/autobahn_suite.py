"""Runs the Autobahn test suite on Python 3.

    autobahn_suite.py server URL REPORTS      the suite's fuzzing client against a server that echoes
    autobahn_suite.py client REPORTS          its fuzzing server for a client that echoes; prints its port first

Both write the suite's own report, index.json, to REPORTS and end with 0 when no case failed and none was left out.

The suite is source of Python 2, where text and bytes are one. It is translated when this starts: read as Latin-1, so
that its literals hold one character a byte, rewritten by lib2to3 and, where that is not enough, by the table below; at
the border to the WebSocket library text becomes bytes and back. Cases 12 and 13 are about compression, which Weir does
not accept, and are not in the translation.
"""

import json
import lib2to3.refactor
import os
import re
import sys
import sysconfig
import tempfile

SOURCE = os.path.join(sysconfig.get_paths()["purelib"], "autobahntestsuite")

PRELUDE = '''
def _text(data):
    return data.decode("latin-1") if isinstance(data, (bytes, bytearray)) else data

def _bytes(text):
    return text.encode("latin-1") if isinstance(text, str) else text

def _hex(data):
    return _bytes(data).hex()
'''

BORDER = PRELUDE + '''
class Border:
    """Between the suite's text, one character a byte, and the library's bytes."""
    debug = False

    def sendFrame(self, opcode, payload="", **options):
        if options.get("mask") is not None:
            options["mask"] = _bytes(options["mask"])
        super().sendFrame(opcode, payload=_bytes(payload), **options)

    def sendMessage(self, payload, isBinary=False, **options):
        super().sendMessage(_bytes(payload), isBinary, **options)

    def sendMessageFrame(self, payload, sync=False):
        super().sendMessageFrame(_bytes(payload), sync)

    def sendMessageFrameData(self, payload, sync=False):
        return super().sendMessageFrameData(_bytes(payload), sync)

    def sendCloseFrame(self, code=None, reasonUtf8=None, isReply=False):
        super().sendCloseFrame(code, _bytes(reasonUtf8), isReply)

    def beginMessage(self, opcode=1):
        super().beginMessage(isBinary=opcode == 2)

    def failConnection(self):
        self._fail_connection()
'''

# What lib2to3 does not see, by file: what is there, what takes its place. Each must be found.
CHANGES = {
    "fuzzing.py": [
        (r"import os, json, binascii, time, textwrap, pkg_resources", "import os, json, time, textwrap" + BORDER),
        (r"from report import [\w, \\\n]*?JS_MASTER_REPORT", ""),
        (r"produceHtml = True", "produceHtml = False"),
        (r"json\.dumps\(case, ", "json.dumps(case, default = _text, "),
        (r"\nimport autobahntestsuite\n", "\nclass autobahntestsuite:\n   version = 'translated'\n"),
        (r"binascii\.b2a_hex\(", "_hex("),
        (r"dd\.decode\('utf8', errors", "_bytes(dd).decode('utf8', errors"),
        (r"p = ''\.join\(payload\)", "p = b''.join(payload)"),
        (r"def asciiLogData\(data, maxlen = 64, replace = False\):", "def asciiLogData(data, maxlen = 64, replace = False):\n   data = _text(data)"),
        (r"class FuzzingServerProtocol\(FuzzingProtocol, ", "class FuzzingServerProtocol(FuzzingProtocol, Border, "),
        (r"class FuzzingClientProtocol\(FuzzingProtocol, ", "class FuzzingClientProtocol(FuzzingProtocol, Border, "),
        (r"def onMessage\(self, msg, binary\):\n", "def onMessage(self, msg, binary):\n      msg = _text(msg)\n"),
        (r"def onPong\(self, payload\):\n", "def onPong(self, payload):\n      payload = _text(payload)\n"),
        (r"Factory\.__init__\(self, debug = debug, debugCodePaths = debug\)", "Factory.__init__(self)"),
    ],
    "case/case.py": [(r"pickle\.dumps\(obj1\) == pickle\.dumps\(obj2\)", "obj1 == obj2")],
    "case/__init__.py": [
        (r"from case12_x_x import \*", ""),
        (r"Cases\.extend\(Case1[23]_X_X\)", ""),
        (r"CaseSubCategories\.update\(Case1[23]_X_X_CaseSubCategories\)", ""),
    ],
    "case/case10_1_1.py": [(r"len\(self\.payload\) / ", "len(self.payload) // ")],
    "case/case6_x_x.py": [(r"v\.validate\(vss\[:i\]\)", "v.validate(vss[:i].encode('latin-1'))")],
}
# In every case.
EVERYWHERE = [
    (r"\(object, Case, \)", "(Case,)"),
    (r"^from (case\w*) import", r"from .\1 import"),
    (r"^(import|from) binascii.*$", ""),
    (r"\bimport binascii\b", ""),
    (r"binascii\.b2a_hex\(", "_hex("),
    (r"\A", PRELUDE),
    (r"from zope\.interface import implements", "from zope.interface import implementer"),
    (r"^(\s*)implements\(.*\)$", ""),
]


# The library's own second is too short on a machine that is busy with something else for a moment.
PATIENCE = {"server": {"closeHandshakeTimeout": 30, "serverConnectionDropTimeout": 30}, "client": {"closeHandshakeTimeout": 30}}


def translate(target):
    """Writes the translated suite to a folder."""
    tool = lib2to3.refactor.RefactoringTool(
        [f for f in lib2to3.refactor.get_fixers_from_package("lib2to3.fixes") if not f.endswith("fix_import")])
    wanted = ["caseset.py", "fuzzing.py", "case/__init__.py"] + sorted(
        "case/" + name for name in os.listdir(os.path.join(SOURCE, "case"))
        if re.fullmatch(r"case(?!12_|13_)\w*\.py", name))
    os.makedirs(os.path.join(target, "case"))
    for name in wanted:
        with open(os.path.join(SOURCE, name), encoding="latin-1") as file:
            text = re.sub(r"^#.*coding.*$", "", file.read().replace("\r\n", "\n"), flags=re.M)
        text = str(tool.refactor_string(text + "\n", name))
        for pattern, replacement in CHANGES.get(name, []):
            text, count = re.subn(pattern, lambda _, r=replacement: r, text)
            if count == 0:
                raise SystemExit(f"the suite's {name} has no {pattern}: another version?")
        if name.startswith("case/"):
            for pattern, replacement in EVERYWHERE:
                text = re.sub(pattern, replacement, text, flags=re.M)
        with open(os.path.join(target, name), "w", encoding="utf-8") as file:
            file.write(text)


def judge(reports, expected):
    """Reads the suite's report; prints what is not as it should be."""
    with open(os.path.join(reports, "index.json"), encoding="utf-8") as file:
        results = next(iter(json.load(file).values()), {})
    fine = {"OK", "INFORMATIONAL"}
    bad = {case: (result["behavior"], result["behaviorClose"]) for case, result in results.items()
           if result["behavior"] not in fine or result["behaviorClose"] not in fine}
    missing = sorted(set(expected) - set(results))
    for case, (behavior, close) in sorted(bad.items()):
        print(f"FAIL {case}: {behavior}, close {close}")
    if missing:
        print("FAIL not run: " + " ".join(missing))
    if not bad and not missing:
        print(f"ok {len(results)} cases")
    return 1 if bad or missing else 0


def main():
    mode, rest = sys.argv[1], sys.argv[2:]
    reports = os.path.abspath(rest[-1])
    os.makedirs(reports, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        suite = os.path.join(folder, "suite")
        translate(suite)
        sys.path.insert(0, suite)
        sys.dont_write_bytecode = True
        import fuzzing
        from twisted.internet import reactor
        # The suite's running commentary is of no use here.
        fuzzing.print = lambda *_: None
        only = os.environ.get("AUTOBAHN_CASES", "*").split(",")
        spec = {"outdir": reports, "cases": only, "exclude-cases": [], "exclude-agent-cases": {}}
        if mode == "server":
            spec["servers"] = [{"agent": "weir", "url": rest[0]}]
            factory = fuzzing.FuzzingClientFactory(spec)
        else:
            spec["url"] = "ws://127.0.0.1:9001"
            factory = fuzzing.FuzzingServerFactory(spec)
            port = reactor.listenTCP(0, factory, interface="127.0.0.1")
            print(json.dumps({"port": port.getHost().port, "cases": len(factory.specCases)}), flush=True)
        factory.setProtocolOptions(**PATIENCE[mode])
        reactor.run()
        return judge(reports, factory.specCases)


if __name__ == "__main__":
    sys.exit(main())
