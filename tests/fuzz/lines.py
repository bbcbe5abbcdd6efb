"""Command lines: a valid one of each kind, and what its options may be given."""

from tests.fuzz.mutations import NUMBERS, mutated_text, pick

GOOD = "good.xml"
_SPEC = ("ring:3", "pair.yaml", "lab.yaml", "mesh:2x2", "clique:2", "torus:2x2", "hypercube:2")
_BAD_SPEC = (
    *(
        "line(kautz:2,2)",
        "product(uniring:3,cayley:2:2:1:1.0,0.1)",
        "duplex(genkautz:2,7)",
        "line^9(degree:3(clique:4))",
        "power:40(lcf:2,1)",
        "line(distance-regular:x",
        "ring:0",
        "ring:1",
        "ring:999999999",
        "mesh:9999x9999",
        "hypercube:99",
        "clique:99999",
        "x:3",
    ),
    *(
        "none.yaml",
        ".",
        "good.xml",
        "dgx-a10",
        "mesh:2x",
        "torus:2x2x2x2x2x2x2x2x2x2x2x2x2x2x2x2x2",
    ),
)
_SIZES = ("1KiB", "64MB", "0", "1B", "1e99 TB", "1EiB", "1/3", "4GiB", "3.5", "9" * 400, "-1")
_RANKS = ("0,1", "0-1", "1,0", "0-1;2-3", "0;1", "0-131071", "0-999999999", "5", ",", "0-1,0-1")
_LINKS = ("gpu0-gpu1", "gpu0->gpu1", "0-1", "gpu0-gpu1=50%", "gpu0-gpu1=0%", "-" * 3000, "gpu9-x")
_ALGORITHMS = (
    "forest",
    "bfb",
    "ring",
    "tree",
    "roots",
    "ten",
    "auto",
    "all-pairs",
    "two-level",
    "x",
)
_PIPES = (
    "pack-trees",
    "build-ring{channels=2}",
    'a{b="c"}',
    "pack-trees,lower-forest",
    "{",
    "," * 99,
)

COMMON = {
    "--nodes": NUMBERS,
    "--set": (
        "nic=1 GB/s",
        "planes=3",
        "nic=0",
        "planes=1e9",
        "x=1",
        "=",
        "half=nic*nic",
        "nic=nic",
    ),
    "--bandwidth": (
        "1 GB/s",
        "1,2 GB/s",
        "0 GB/s",
        "1e99 GB/s",
        "1e-99 GB/s",
        "1",
        f"{'9' * 400} b/s",
    ),
    "--latency": ("0 s", "1 us", "1e99 s", "1e-99 ns", "1/3 us", "-1 us", "1,2,3 us"),
    "--drop-link": _LINKS,
    "--drop-gpu": ("gpu0", "1", "9", "sw"),
    "--drop-nic": ("nic0.0", "nic0", "x"),
    "--degrade": _LINKS,
    "--group": _RANKS,
    "--json": None,
}
PROBLEM = {
    "-c": ("allgather", "allreduce", "reduce-scatter", "broadcast", "alltoall", "gather", "x"),
    "--root": (*_RANKS, *NUMBERS),
    "--seed": NUMBERS,
}
FORMS = {
    "--groups": _RANKS,
    "--transit": None,
    "--custom": ("custom.yaml", "none.yaml", "."),
    "--shards": ("shards.yaml", "custom.yaml"),
}
TIMED = {
    "--chunks-per-gpu": NUMBERS,
    "--policy": ("auto", "oldest", "rarest", "earliest", "x"),
    "--tries": NUMBERS,
    "--budget": NUMBERS,
    "--size": _SIZES,
}
FILES = {
    "-r": ("msccl", "msccl-executor", "rccl", "nccl", "", "MSCCL"),
    "-a": _ALGORITHMS,
    "--trees": ("auto", "optimal", *NUMBERS),
    "--protocol": ("Simple", "LL", "LL128", "ll", "x"),
    "--mode": ("auto", "both", "in-place", "out-of-place", "x"),
    "--instances": NUMBERS,
    "--channels": NUMBERS,
    "--min-bytes": _SIZES,
    "--max-bytes": _SIZES,
    "--passes": _PIPES,
    "--dump-ir": ("all", "pack-trees", "x"),
    "--dump-dir": ("dumps", "out.xml", "."),
    "--time-passes": None,
}
SEARCHED = {
    "-r": FILES["-r"],
    "--sizes": ("1KiB", "1KiB,1MiB", "1B..1e99TB", "1..2,3", "", "0", *_SIZES),
    "--algorithms": ("ring", "ring,forest", "x", ","),
    "--jobs": ("1", "0", "-1", "9223372036854775808", "x", "100000"),
}
ON = {"-t": (*_SPEC, *_BAD_SPEC), "--sizes": SEARCHED["--sizes"]}

SHOWN = {
    "--model": ("model.yaml", "lab.yaml", "."),
    "--show-model": None,
    "--breakdown": None,
    "--timeline": ("out.json", "."),
    "--force": None,
}

LINES = (
    (["topology", "check", "pair.yaml"], COMMON),
    (["topology", "show", "lab.yaml"], {**COMMON, "--all": None}),
    (["topology", "export", "ring:3"], COMMON),
    (
        ["bound", "ring:3", "-c", "allgather"],
        {**COMMON, **PROBLEM, **FORMS, "--trees": FILES["--trees"]},
    ),
    (
        ["synthesize", "ring:3", "-c", "allgather", "--schedule", "out.npz", "--force"],
        {**COMMON, **PROBLEM, **FORMS, **TIMED},
    ),
    (
        [
            "compile",
            "ring:3",
            "-c",
            "allgather",
            "-r",
            "msccl",
            "-a",
            "ring",
            "-o",
            "out.xml",
            "--force",
        ],
        {**COMMON, **PROBLEM, **FORMS, **TIMED, **FILES},
    ),
    (["verify", GOOD, "-r", "msccl"], {"-r": FILES["-r"], "--single-node": None, "--json": None}),
    (
        ["simulate", GOOD, "-t", "clique:2"],
        {**COMMON, **ON, **SHOWN},
    ),
    (["env", GOOD, "-r", "msccl"], {"-r": FILES["-r"], "--json": None}),
    (
        ["compare", "ring:2", "-c", "allgather", "--sizes", "1KiB", "--budget", "2", "--jobs", "1"],
        {**COMMON, **PROBLEM, **SEARCHED},
    ),
    (
        [
            *(
                "tune",
                "ring:2",
                "-c",
                "allgather",
                "-r",
                "msccl",
                "--sizes",
                "1KiB",
                "--budget",
                "2",
            ),
            *("--jobs", "1", "-o", "tuned", "--force"),
        ],
        {**COMMON, **PROBLEM, **SEARCHED},
    ),
    (
        ["survey", "ring:3", "-c", "allgather", "-a", "ring", "--jobs", "1"],
        {
            **COMMON,
            **PROBLEM,
            "--failures": ("links:1", "gpus:1", "nics:1", "links:2", "x", ":" * 99),
        },
    ),
    (["explain", "CS101"], {"--json": None}),
    (["passes"], {"--json": None}),
    (["runtimes"], {"--json": None}),
)


def mutated_line(rng):
    """Return a command line with options of its command, some of them with hostile values."""
    words, options = pick(rng, LINES)
    words = list(words)
    if rng.random() < 0.2:
        words[1:2] = [pick(rng, (*_SPEC, *_BAD_SPEC, mutated_text(rng, "torus:2x2")))]
    for _ in range(pick(rng, (1, 1, 2, 3))):
        option = pick(rng, sorted(options))
        values = options[option]
        words.append(option)
        if values is not None:
            value = pick(rng, values)
            words.append(mutated_text(rng, value) if rng.random() < 0.2 else value)
    if rng.random() < 0.1:
        del words[rng.randrange(len(words))]
    # No argument of a process holds a zero byte.
    return [word.replace("\0", "") for word in words]
