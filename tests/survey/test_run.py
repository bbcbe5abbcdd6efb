import json
from dataclasses import replace
from fractions import Fraction

import pytest

from colsynth import api
from colsynth.errors import InputError
from colsynth.jobs.workers import Workers
from colsynth.survey import Row, Survey, SurveyCase, run, survey
from colsynth.survey.survey_case import Found
from colsynth.topology import load

PROBLEM = api.make_problem(load("mesh:2x3"), "allgather")
CASE = SurveyCase(PROBLEM, ("links",))


@pytest.fixture
def examined(monkeypatch):
    """The failures that are worked out, in order; with answers that cost no time."""
    asked = []

    def examine(case, failures):
        asked.append(failures)
        label = run.label_of(case.problem.topology, failures)
        bound = Fraction(100 - 7 * len(asked) % 5)
        name = f"{label or 'whole'}.xml"
        return Found(Row(label, 6, bound, bound / 2), ((name, label.encode()),))

    monkeypatch.setattr(run, "examine", examine)
    return asked


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_every_failure_has_a_row_the_worst_first():
    done = survey(CASE)
    assert {row.failure for row in done.rows} == {
        f"gpu{a}-gpu{b}" for a, b in ("01", "12", "34", "45", "03", "14", "25")
    }
    assert [row.bound for row in done.rows] == sorted(row.bound for row in done.rows)
    assert done.healthy.bound == api.bound(PROBLEM).algbw
    # Without the middle rung each corner still has two links, without another some has one.
    assert [float(done.loss(row)) for row in done.rows] == [0.5] * 6 + [0]


def test_rows_with_equal_bounds_are_sorted_by_what_is_reached_then_by_number():
    reached = {"a": Fraction(2), "b": Fraction(1), "c": None, "e": Fraction(2)}
    rows = [Row(name, 4, Fraction(2), algbw) for name, algbw in reached.items()]
    ordered = sorted([*rows, Row("d", 4, Fraction(1), Fraction(1))], key=run._badness)
    assert [row.failure for row in ordered] == ["d", "c", "b", "a", "e"]


def test_losses_in_percent():
    rows = (Row("x", 4, Fraction(3, 4), Fraction(1, 2)), Row("y", 4, Fraction(0)))
    found = Survey(CASE, Row("", 4, Fraction(1), Fraction(1)), rows).describe()["rows"]
    assert [row["loss_percent"] for row in found] == [25, 100]
    assert [row["algbw_loss_percent"] for row in found] == [50, None]


def test_several_processes_give_the_same_bytes(tmp_path):
    alone = survey(CASE, tmp_path / "alone")
    with Workers(2) as workers:
        together = survey(CASE, tmp_path / "together", workers)
    assert alone == together
    assert contents(tmp_path / "alone") == contents(tmp_path / "together")


def test_the_folder_holds_table_and_schedules(tmp_path):
    done = survey(CASE, tmp_path)
    table = json.loads((tmp_path / "survey.json").read_text())
    assert table == done.describe()
    listed = [file["path"] for row in (table["healthy"], *table["rows"]) for file in row["files"]]
    assert {path for path in contents(tmp_path) if path.startswith("schedules/")} == set(listed)
    assert len({path.rpartition("/")[0] for path in listed}) == 8  # a folder for each


def test_what_an_earlier_run_found_is_not_worked_out_again(tmp_path, examined):
    first = survey(CASE, tmp_path)
    assert len(examined) == 8
    assert survey(CASE, tmp_path) == first
    assert len(examined) == 8


def test_what_was_cut_off_is_worked_out_again(tmp_path, examined):
    first = survey(CASE, tmp_path)
    before = contents(tmp_path)
    owner, *kept, torn = (tmp_path / "journal.jsonl").read_text().splitlines()[:5]
    (tmp_path / "journal.jsonl").write_text("\n".join([owner, *kept, torn[:-40]]))
    (tmp_path / "survey.json").unlink()
    again = survey(CASE, tmp_path)
    assert len(examined) == 8 + 8 - len(kept)
    assert {row.failure for row in again.rows} == {row.failure for row in first.rows}
    assert contents(tmp_path).keys() == before.keys()


@pytest.mark.parametrize("harm", ["change", "remove"])
def test_a_schedule_that_is_not_what_it_was_is_made_again(harm, tmp_path, examined):
    survey(CASE, tmp_path)
    file = next((tmp_path / "schedules").glob("003-*/*"))
    before = file.read_bytes()
    file.write_bytes(b"<algo") if harm == "change" else file.unlink()
    survey(CASE, tmp_path)
    assert len(examined) == 9
    assert file.read_bytes() == before


@pytest.mark.usefixtures("examined")
def test_only_a_survey_of_the_same_goes_on_and_only_surveys_are_replaced(tmp_path):
    place = tmp_path / "found"
    survey(CASE, place)
    other = replace(CASE, seed=1)
    with pytest.raises(InputError, match="survey of something else") as caught:
        survey(other, place)
    assert caught.value.diagnostic.code == "CS207"
    (place / "notes.txt").write_text("mine")
    survey(other, place, force=True)
    assert (place / "notes.txt").read_text() == "mine"
    assert json.loads((place / "survey.json").read_text())["seed"] == 1
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "thesis.tex").write_text("years")
    for force in (False, True):
        with pytest.raises(InputError, match="no survey of ours"):
            survey(CASE, tmp_path / "else", force=force)
    assert contents(tmp_path / "else") == {"thesis.tex": b"years"}
    with pytest.raises(InputError, match="exists"):
        survey(CASE, tmp_path / "else" / "thesis.tex")


@pytest.mark.usefixtures("examined")
def test_wrong_options_leave_an_earlier_survey_alone(tmp_path):
    survey(CASE, tmp_path)
    before = contents(tmp_path)
    wrong = [replace(CASE, algorithm="rings"), replace(CASE, kinds=("nics",))]
    for case in wrong:
        with pytest.raises(InputError):
            survey(case, tmp_path, force=True)
    assert contents(tmp_path) == before


@pytest.mark.usefixtures("examined")
def test_progress_counts_what_was_known_already(tmp_path):
    told = []
    survey(CASE, tmp_path, progress=lambda *args: told.append(args))
    assert told[:2] == [("surveying", 0, 8), ("surveyed healthy", 1, 8)]
    assert told[-1][1:] == (8, 8)
    assert len(told) == 9
    survey(CASE, tmp_path, progress=lambda *args: told.append(args))
    assert told[9:] == [("surveying", 8, 8)]


def test_progress_counts_failures(monkeypatch):
    cut = Found(Row("cut", 2, Fraction(1), refusal="CS312: does not fit"))
    monkeypatch.setattr(run, "examine", lambda *_: cut)
    told = []
    survey(CASE, None, progress=lambda what, *_: told.append(what))
    assert told[1:] == [f"surveyed cut, {count} without a schedule" for count in range(1, 9)]


def test_odd_names_of_nodes_give_folders_that_every_system_takes(tmp_path, monkeypatch):
    monkeypatch.setattr(
        run, "examine", lambda *_: Found(Row("../a b/*-c", 2, Fraction(1)), (("f.xml", b""),))
    )
    done = survey(SurveyCase(api.make_problem(load("ring:2"), "allgather"), ("links",)), tmp_path)
    assert [path for row in done.rows for path, _ in row.files] == ["schedules/001-a-b-c/f.xml"]


@pytest.mark.parametrize(
    "change",
    [
        {"files": [{"path": "/dev/zero", "sha256": "0"}]},
        {"files": [{"path": "../../../../../dev/zero", "sha256": "0"}]},
        {"files": [{"path": "journal.jsonl", "sha256": "0"}]},
        {"bound": "1/0"},
        {"bound": "0"},
        {"ranks": None},
    ],
    ids=str,
)
def test_a_damaged_row_is_worked_out_again(change, examined, tmp_path):
    survey(CASE, tmp_path / "s")
    whole, path = contents(tmp_path), tmp_path / "s" / "journal.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    healthy = next(line for line in lines if line["key"] == "row 000000")
    healthy["value"].update(change)
    path.write_text("\n".join(map(json.dumps, lines)))
    examined.clear()
    survey(CASE, tmp_path / "s")
    assert len(examined) == 1
    assert contents(tmp_path) == whole
