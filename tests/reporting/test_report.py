"""One file without references, whose numbers are those of the comparison, and a real browser."""

import copy
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt

from tsrnn import ARMA, GARCH, ParaRNNForecaster, backtest, compare, report
from tsrnn.baselines import Drift

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--allow-file-access-from-files",
]  # fmt: skip
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on the path")


def monthly(n=160, seed=0):
    noise = np.random.default_rng(seed).normal(size=n)
    index = pd.date_range("2001-01", periods=n, freq="MS")
    return pd.Series(10 + 3 * np.sin(np.arange(n) / 2) + 0.3 * noise.cumsum(), index, name="y")


@pytest.fixture(scope="module")
def forecasts():
    models = {"ARMA(2,1)": ARMA(order=(2, 1)), "walk <b>": ARMA(order=(0, 1, 0))}
    wide = pd.DataFrame({"north": monthly(), "south": monthly(seed=1)})
    return backtest(models, wide, h=6, n_windows=30, step_size=2, refit=False, level=[80, 95])


@pytest.fixture(scope="module")
def fitted():
    settings = {"input_size": 8, "hidden_size": 4, "n_layers": 1, "max_epochs": 1}
    network = ParaRNNForecaster(horizon=6, random_state=0, linear_path=False, **settings)
    return {"network": network.fit(monthly()), "arma": ARMA(order=(1, 1)).fit(monthly())}


@pytest.fixture(scope="module")
def result(forecasts):
    return compare(forecasts)


@pytest.fixture(scope="module")
def file(result, fitted, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return report(result, folder / "report.html", models=fitted, title="Two <models>")


@pytest.fixture(scope="module")
def wide_page(tmp_path_factory):
    models = {f"model number {i}": Drift() for i in range(4)}
    frame = backtest(models, monthly(), h=6, n_windows=30, step_size=1, level=[80, 90, 95])
    frame.attrs["backtest"]["set_aside"] = [
        {"unique_id": "x" * 50, "model": None, "n_windows": 3, "error": "words and " * 20}
    ]
    return report(compare(frame, n_boot=20), tmp_path_factory.mktemp("wide") / "page.html")


class Reader(HTMLParser):
    """Text, tables and what a page refers to; open tags must be closed in order."""

    def __init__(self):
        super().__init__()
        self.stack, self.tables, self.words, self.links = [], [], [], []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.links += [found[key] for key in ("src", "href") if key in found]
        if tag not in ("meta", "img"):
            self.stack.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if not self.stack or self.stack[-1] == "style":
            return
        self.words.append(data)
        if self.stack[-1] in ("td", "th"):
            self.tables[-1][-1].append(data)


def read(path):
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    assert reader.stack == []
    return reader


class TestPage:
    def test_needs_nothing_beside_it(self, file):
        text, page = file.read_text(encoding="utf-8"), read(file)
        assert page.links
        assert all(link.startswith("data:image/svg+xml;base64,") for link in page.links)
        assert "<script" not in text
        assert "@import" not in text
        assert "url(" not in text

    def test_names_and_titles_are_text(self, file):
        page = read(file)
        assert "Two <models>" in page.words
        assert "walk <b>" in page.words

    def test_says_what_the_comparison_says(self, file, result):
        said = " ".join(read(file).words)
        for sentence in (*result.words(), *result.notes):
            assert sentence in said

    def test_numbers_are_those_of_the_comparison(self, file, result):
        tables, columns = iter(read(file).tables), []
        while len(columns) < len(result.accuracy.columns):
            (_, *names), *rows = next(tables)
            columns += names
            for label, *cells in rows:
                expected = result.accuracy.loc[label, names]
                np.testing.assert_allclose([float(cell) for cell in cells], expected, rtol=2e-3)
        assert columns == list(result.accuracy.columns)

    def test_dates_without_a_time_have_none(self, file):
        said = " ".join(read(file).words)
        assert "cutoffs from 2008-12-01 to 2013-10-01." in said
        assert "00:00" not in said

    def test_has_every_part(self, file, fitted):
        said = "".join(read(file).words)
        for part in ("In words", "Accuracy", "Tests of equal accuracy", "Forecasts",
                     "Errors one step ahead", "Models", "Notes"):  # fmt: skip
            assert part in said
        assert str(fitted["arma"].summary()).splitlines()[0].strip() in said
        assert f"network: {fitted['network'].summary().composition}" in said
        pictures = re.findall(r'alt="([^"]*)"', file.read_text(encoding="utf-8"))
        assert "recurrence features of the forecasts of network" in pictures
        assert "contributions to the forecast by network" in pictures
        assert "forecasts of north by model" in pictures
        panels = ["RMSSE by step", "coverage-80 by step", "coverage-95 by step", "mean ranks"]
        assert pictures[:4] == panels

    @pytest.mark.slow
    def test_shows_components_and_effects_of_the_prior_network(self, result, tmp_path):
        y = monthly()
        df = pd.DataFrame({"y": y + np.arange(160) % 7, "days": np.arange(160) % 7}, y.index)
        models = {
            "alone": ParaRNNForecaster(6).fit(y),
            "columns": ParaRNNForecaster(6, target="y", known_ahead="days").fit(df),
        }
        page = report(result, tmp_path / "a.html", models=models).read_text(encoding="utf-8")
        pictures = re.findall(r'alt="([^"]*)"', page)
        assert "components by alone" in pictures
        assert "contributions to the forecast by alone" in pictures
        assert "effects of columns by alone" not in pictures
        assert {"components by columns", "effects of columns by columns"} <= {*pictures}

    def test_says_where_the_network_contributes_nothing(self, fitted, tmp_path):
        network = copy.copy(fitted["network"])
        network.fitted_ = replace(network.fitted_, best_epochs=[0])
        result = compare(_drawn(["A"], n_windows=3))
        path = report(result, tmp_path / "a.html", models={"off": network})
        said = "".join(read(path).words)
        assert said.index("off: Forecasts: the local level alone.") < said.index("Accuracy")
        assert "recurrence features of the forecasts of off" in path.read_text(encoding="utf-8")

    @pytest.mark.slow
    def test_twice_is_the_same_and_leaves_nothing_behind(self, file, result, fitted, tmp_path):
        before = dict(mpl.rcParams)
        page = report(result, tmp_path / "b.html", models=fitted, title="Two <models>")
        assert page.read_bytes() == file.read_bytes()
        assert list(tmp_path.iterdir()) == [page]
        assert plt.get_fignums() == []
        assert dict(mpl.rcParams) == before


class TestOtherComparisons:
    def test_of_one_model_and_one_step(self, tmp_path):
        frame = backtest(ARMA(order=(1, 0)), monthly(60), h=1, n_windows=4)
        page = read(report(compare(frame), tmp_path / "a.html"))
        assert "Tests of equal accuracy" not in page.words
        assert "Accuracy" in page.words

    @pytest.mark.slow
    def test_of_variances(self, tmp_path):
        returns = pd.Series(np.random.default_rng(0).normal(size=230))
        models = {"a": GARCH(), "b": GARCH(order=(1, 0))}
        frame = backtest(models, returns, h=1, n_windows=30, refit=False, kind="variance")
        page = read(report(compare(frame), tmp_path / "a.html"))
        assert "QLIKE" in page.words
        assert "Errors one step ahead" not in page.words

    @pytest.mark.slow
    def test_of_many_series(self, tmp_path):
        wide = pd.DataFrame({f"s{i}": monthly(60, i) for i in range(9)})
        models = {"a": ARMA(order=(1, 0)), "b": ARMA(order=(0, 1, 0))}
        frame = backtest(models, wide, h=2, n_windows=12, step_size=1, refit=False, level=80)
        text = report(compare(frame), tmp_path / "a.html", n_series=1).read_text(encoding="utf-8")
        assert "Percent of series" in text
        assert "forecasts of s0 by model" in text
        assert "forecasts of s1 by model" not in text

    @pytest.mark.slow
    def test_of_many_models_shows_pairs_with_the_best(self, tmp_path):
        rng = np.random.default_rng(0)
        frame = backtest(
            ARMA(order=(1, 0)), monthly(90), h=2, n_windows=25, step_size=2, refit=False
        )
        for i in range(4):
            frame[f"m{i}"] = frame["y"] + rng.normal(size=len(frame))
        result = compare(frame, n_boot=20)
        page = read(report(result, tmp_path / "a.html"))
        assert f"Pairs with {result.models[0]} only; " in " ".join(page.words)
        assert max(len(row) for table in page.tables for row in table) < 15
        assert len(result.plot()) > 0

    @pytest.mark.slow
    def test_of_many_models_has_the_limits_of_the_summary(self, tmp_path):
        result = compare(_drawn([f"M{i}" for i in range(9)]), n_boot=20)
        page = read(report(result, tmp_path / "a.html"))
        assert max(len(row) for table in page.tables for row in table) <= 10
        pairs = [table for table in page.tables if table[0][:2] == ["model", "against"]]
        assert [len(table) for table in pairs] == [9]
        said = " ".join(page.words)
        best = result.models[0]
        assert f"Pairs with {best} only; all are in Comparison.diebold_mariano." in said
        assert "72 ordered pairs, too many for a page; they are in Comparison.encomp" in said

    def test_of_few_models_has_all_pairs(self, tmp_path):
        result = compare(_drawn(["A", "B", "C", "D"]), n_boot=20)
        page = read(report(result, tmp_path / "a.html"))
        pairs = [table for table in page.tables if table[0][:2] == ["model", "against"]]
        assert [len(table) for table in pairs] == [7]
        assert any(table[0][:2] == ["model", "encompasses"] for table in page.tables)
        assert "Pairs with" not in " ".join(page.words)

    def test_names_in_letters_that_the_font_lacks(self, tmp_path, recwarn):
        frame = _drawn(["模型", "_b", "$c_1$"]).assign(unique_id="東京")
        report(compare(frame, n_boot=20), tmp_path / "a.html")
        assert not [w for w in recwarn if "Glyph" in str(w.message)]


def _drawn(names, n_windows=30, steps=2):
    rng = np.random.default_rng(0)
    w, h = (i.ravel() for i in np.indices((n_windows, steps)))
    frame = pd.DataFrame({"unique_id": "a", "ds": w + h + 1, "cutoff": w})
    frame["y"] = rng.normal(size=len(w))
    return frame.assign(**{name: rng.normal(size=len(w)) for name in names})


class TestRefusals:
    def test_of_what_is_no_comparison(self, forecasts, tmp_path):
        with pytest.raises(TypeError, match="must be what compare gave; got DataFrame"):
            report(forecasts, tmp_path / "a.html")

    def test_of_places(self, result, tmp_path):
        with pytest.raises(FileNotFoundError, match="make it first"):
            report(result, tmp_path / "no" / "a.html")
        with pytest.raises(IsADirectoryError, match="name a file"):
            report(result, tmp_path)

    def test_of_other_arguments(self, result, tmp_path):
        with pytest.raises(TypeError, match="title must be text; got None"):
            report(result, tmp_path / "a.html", title=None)
        with pytest.raises(ValueError, match="n_series must be a positive integer"):
            report(result, tmp_path / "a.html", n_series=-1)
        with pytest.raises(TypeError, match="names of models must be text; got 1"):
            report(result, tmp_path / "a.html", models={1: ARMA()})

    def test_of_models(self, result, tmp_path):
        with pytest.raises(TypeError, match="'a' is ARMA"):
            report(result, tmp_path / "a.html", models={"a": ARMA()})
        with pytest.raises(TypeError, match="forecasters by name"):
            report(result, tmp_path / "a.html", models=[ARMA()])
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("n_series", ["2", 1.5, True, None])
    def test_of_counts(self, result, tmp_path, n_series):
        with pytest.raises(TypeError, match="n_series must be a positive integer; got"):
            report(result, tmp_path / "a.html", n_series=n_series)


@needs_browser
class TestBrowser:
    def run(self, folder, *arguments):
        done = subprocess.run(
            [BROWSER, *FLAGS, f"--user-data-dir={folder / 'profile'}", *arguments],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def test_is_drawn(self, file, tmp_path):
        shot = tmp_path / "shot.png"
        self.run(tmp_path, "--window-size=1000,3000", f"--screenshot={shot}", file.as_uri())
        picture = plt.imread(shot)[:, :, :3]
        assert picture.shape == (3000, 1000, 3)
        dark = (picture.mean(2) < 0.6).reshape(10, 300, 1000).mean((1, 2))
        assert (dark > 0.002).all(), "a tenth of the page is empty"
        coloured = (np.ptp(picture, axis=2) > 0.3).mean()
        assert coloured > 0.002, "there are no drawings"

    @pytest.mark.few("360")
    @pytest.mark.parametrize("width", [360, 1200])
    def test_is_not_wider_than_the_screen(self, file, tmp_path, width):
        frame = tmp_path / "frame.html"
        frame.write_text(
            f'<iframe id="f" src="{file.as_uri()}" width="{width}" height="700" frameborder="0">'
            '</iframe><p id="said"></p><script>onload = () => {'
            'const page = document.getElementById("f").contentDocument;'
            "const broken = [...page.images].filter(i => !i.complete || !i.naturalWidth).length;"
            'document.getElementById("said").textContent ='
            '"width " + page.documentElement.scrollWidth + " images " + page.images.length +'
            '" broken " + broken;};</script>'
        )
        said = self.run(tmp_path, "--dump-dom", "--virtual-time-budget=5000", frame.as_uri())
        found = re.search(r"width (\d+) images (\d+) broken (\d+)", said)
        assert found is not None, said[-2000:]
        assert int(found[1]) <= width
        assert int(found[2]) >= 5
        assert int(found[3]) == 0

    @pytest.mark.few("700", "print")
    @pytest.mark.parametrize("width", [360, 700, 1200, "print"])
    def test_tables_fit_and_panels_are_legible(self, wide_page, tmp_path, width):
        path = wide_page
        if width == "print":
            style = path.read_text(encoding="utf-8")
            style = style.replace("@media screen and", "@media not all and")
            path = tmp_path / "page.html"
            path.write_text(style.replace("@media print", "@media all"), encoding="utf-8")
        outer = tmp_path / "frame.html"
        outer.write_text(
            f'<iframe id="f" src="{path.as_uri()}" width="{700 if width == "print" else width}" '
            'height="700" frameborder="0"></iframe><p id="said"></p><script>onload = () => {'
            'const page = document.getElementById("f").contentDocument;'
            "const right = page.body.getBoundingClientRect().right;"
            'const cells = [...page.querySelectorAll("td, th, table, .panels img")];'
            "const wide = cells.filter(c => c.scrollWidth > c.clientWidth + 1 ||"
            " c.getBoundingClientRect().right > right + 1);"
            'const panels = [...page.querySelectorAll(".panels img")];'
            "const rows = new Set(panels.map(i => Math.round(i.getBoundingClientRect().top)));"
            'document.getElementById("said").textContent = "cells " + cells.length + " wide " +'
            ' wide.length + " panels " + panels.length + " rows " + rows.size;};</script>'
        )
        said = self.run(tmp_path, "--dump-dom", "--virtual-time-budget=5000", outer.as_uri())
        found = re.search(r"cells (\d+) wide (\d+) panels (\d+) rows (\d+)", said)
        assert found is not None, said[-2000:]
        cells, wide, panels, rows = map(int, found.groups())
        assert cells > 200
        assert wide == 0
        assert (panels, rows) == (5, 5 if width in (360, 700) else 3)

    @pytest.mark.slow
    def test_is_printed(self, file, tmp_path):
        pdf = tmp_path / "page.pdf"
        self.run(tmp_path, f"--print-to-pdf={pdf}", file.as_uri())
        content = pdf.read_bytes()
        assert content.startswith(b"%PDF")
        assert len(re.findall(rb"/Type\s*/Page\b", content)) >= 3
