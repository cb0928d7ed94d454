"""Loaders of long sequences, on files written here to the published layouts, and damaged ones."""

import doctest
import gzip
import importlib
import itertools
import wave
import zipfile

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from tsrnn.datasets import load_eigenworms, load_google12, load_heart_rate, read_ts, speech_features

WORDS = ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")


def write_ts(path, X, y, header):
    lines = [f"@problemName {path.name.split('_')[0]}", *header, "@data"]
    for case, label in zip(X, y, strict=True):
        lines.append(":".join([*(",".join(map(repr, row)) for row in case.T.tolist()), str(label)]))
    data = "\n".join(lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def worms(folder, ending=".ts", counts=(12, 8), classes="1 2"):
    """Sequences of 5 steps whose first value is the number of the case, its parity the class."""
    first = 0
    for part, count in zip(("TRAIN", "TEST"), counts, strict=True):
        cases = np.arange(first, first + count)
        X = cases[:, None, None] + np.random.default_rng(0).uniform(0, 0.4, (count, 5, 6))
        header = ["@timeStamps false", "@dimensions 6", f"@classLabel true {classes}"]
        write_ts(folder / f"EigenWorms_{part}{ending}", X, 1 + cases % 2, header)
        first += count


def test_parts_are_disjoint_and_keep_sequence_and_label_together(tmp_path):
    worms(tmp_path)
    parts = load_eigenworms(data_home=tmp_path, verify=False)
    assert list(parts) == ["train", "validation", "test"]
    cases = {part: np.round(data.X[:, 0, 0] - 0.2).astype(int) for part, data in parts.items()}
    assert [len(c) for c in cases.values()] == [14, 3, 3]
    assert sorted(np.concatenate(list(cases.values()))) == list(range(20))
    for part, data in parts.items():
        assert data.X.shape[1:] == (5, 6)
        assert data.labels == ("1", "2")
        np.testing.assert_array_equal(data.y, np.array(["1", "2"])[cases[part] % 2])
    same, other = (load_eigenworms(data_home=str(tmp_path), verify=False, random_state=seed)
                   for seed in (1234, 1))  # fmt: skip
    np.testing.assert_array_equal(same["test"].X, parts["test"].X)
    assert not np.array_equal(other["test"].X, parts["test"].X)


@pytest.mark.parametrize("layout", ["gz", "folder", "zip"])
def test_worms_are_read_as_they_are_published(tmp_path, layout):
    plain = tmp_path / "plain"
    plain.mkdir()
    worms(plain)
    home = tmp_path / "home"
    home.mkdir()
    if layout == "gz":
        worms(home, ".ts.gz")
    elif layout == "folder":
        (home / "EigenWorms").mkdir()
        worms(home / "EigenWorms")
    else:
        with zipfile.ZipFile(home / "EigenWorms.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(plain.iterdir()):
                archive.write(file, f"EigenWorms/{file.name}")
            archive.writestr("EigenWorms/EigenWorms_TRAIN.arff", "")
    expected, parts = (load_eigenworms(data_home=f, verify=False) for f in (plain, home))
    for part, data in parts.items():
        np.testing.assert_array_equal(data.X, expected[part].X)
        np.testing.assert_array_equal(data.y, expected[part].y)


@pytest.mark.slow
def test_worms_of_the_published_size_are_split_as_in_the_code_of_the_paper(tmp_path):
    line = ":".join([",".join(["1"] * 17_984)] * 5 + [",".join(["-.5"] * 17_984)])
    for part, first, count in (("TRAIN", 0, 128), ("TEST", 128, 131)):
        with (
            zipfile.ZipFile(
                tmp_path / "EigenWorms.zip", "a", zipfile.ZIP_DEFLATED, compresslevel=1
            ) as archive,
            archive.open(f"EigenWorms_{part}.ts", "w") as file,
        ):
            file.write(b"@classLabel true 1 2 3 4 5\n@data\n")
            for case in range(first, first + count):
                # The first value of a case is its number.
                file.write(f"{case}{line[1:]}:{1 + case % 5}\n".encode())
    parts = load_eigenworms(data_home=tmp_path)
    train, rest = train_test_split(np.arange(259), test_size=0.3, random_state=1234)
    validation, test = train_test_split(rest, test_size=0.5, random_state=1234)
    for part, cases in (("train", train), ("validation", validation), ("test", test)):
        np.testing.assert_array_equal(parts[part].X[:, 0, 0], cases)
        np.testing.assert_array_equal(parts[part].y, (1 + cases % 5).astype(str))
        assert parts[part].X.shape[1:] == (17_984, 6)


def test_other_sizes_are_refused_unless_asked_for(tmp_path):
    worms(tmp_path)
    with pytest.raises(ValueError, match=r"259 cases of 17984 steps.* 20 of 5, 6 and 2.*verify"):
        load_eigenworms(data_home=tmp_path)


def test_too_few_cases_are_refused(tmp_path):
    worms(tmp_path, counts=(3, 3))
    parts = load_eigenworms(data_home=tmp_path, verify=False)
    assert [len(data.y) for data in parts.values()] == [4, 1, 1]
    worms(tmp_path, counts=(3, 2))
    with pytest.raises(ValueError, match="cases must be an integer of at least 6; got 5"):
        load_eigenworms(data_home=tmp_path, verify=False)


@pytest.mark.parametrize("random_state", [-1, 0.5, None, "a", True])
def test_seeds_must_be_integers(tmp_path, random_state):
    worms(tmp_path)
    for load in (load_eigenworms, load_heart_rate, load_google12):
        with pytest.raises(ValueError, match="random_state must be an integer of at least 0"):
            load(data_home=tmp_path, random_state=random_state)


def test_seeds_that_the_split_cannot_take_are_refused(tmp_path):
    worms(tmp_path)
    with pytest.raises(ValueError, match="random_state.* 1099511627776"):
        load_eigenworms(data_home=tmp_path, verify=False, random_state=2**40)


def test_missing_files_are_named_with_where_they_are_published(tmp_path):
    for load, name, url in (
        (load_eigenworms, "EigenWorms_TRAIN.ts", "timeseriesclassification.com"),
        (load_heart_rate, "BIDMC32HR_TRAIN.ts", "zenodo.org"),
        (load_google12, "yes", "speech_commands_v0.02"),
    ):
        with pytest.raises(FileNotFoundError, match=rf"(?s){name}.*{url}|{url}.*{name}"):
            load(data_home=tmp_path)
        with pytest.raises(FileNotFoundError, match=url):
            load(data_home=tmp_path / "nowhere")
        with pytest.raises(TypeError, match="data_home must be a path; got None"):
            load(data_home=None)


def test_parts_that_do_not_belong_together_are_refused(tmp_path):
    worms(tmp_path)
    train = (tmp_path / "EigenWorms_TRAIN.ts").read_text()
    (tmp_path / "EigenWorms_TRAIN.ts").write_text(train.replace("true 1 2", "true 2 1"))
    with pytest.raises(ValueError, match="the same classes"):
        load_eigenworms(data_home=tmp_path, verify=False)
    short = ["@dimensions 6", "@classLabel true 1 2"]
    write_ts(tmp_path / "EigenWorms_TRAIN.ts", np.zeros((9, 4, 6)), [1] * 9, short)
    with pytest.raises(ValueError, match=r"one shape.*\(4, 6\) and \(5, 6\)"):
        load_eigenworms(data_home=tmp_path, verify=False)
    (tmp_path / "EigenWorms_TRAIN.ts").write_text("@classLabel true 1 2\n@data\n1,2:1\n1:2")
    with pytest.raises(ValueError, match="one shape"):
        load_eigenworms(data_home=tmp_path, verify=False)


def test_archives_that_are_damaged_or_lack_a_file_are_refused(tmp_path):
    path = tmp_path / "EigenWorms.zip"
    path.write_bytes(b"PK damaged")
    with pytest.raises(ValueError, match=r"EigenWorms\.zip cannot be unzipped"):
        load_eigenworms(data_home=tmp_path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("EigenWorms_TRAIN.ts", "@classLabel true 1\n@data\n" + "1,2:1\n" * 9)
    with pytest.raises(FileNotFoundError, match=r"one file EigenWorms_TEST\.ts; it holds 0"):
        load_eigenworms(data_home=tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(whole[60:80], b"\0" * 20, 1))
    with pytest.raises(ValueError, match="cannot be unzipped"):
        read_ts(path, member="EigenWorms_TRAIN.ts")


def test_a_member_belongs_to_a_zip_archive(tmp_path):
    with pytest.raises(ValueError, match="member must be"):
        read_ts(tmp_path / "x.zip")
    with pytest.raises(ValueError, match="member must be"):
        read_ts(tmp_path / "x.ts", member="x.ts")
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a/x.ts", "@data\n1,bad")
    with pytest.raises(ValueError, match=r"x\.zip.x\.ts, line 2: value 2"):
        read_ts(tmp_path / "x.zip", member="x.ts")


def heart_rates(folder, ending=".ts"):
    for part, first, count in (("TRAIN", 0, 20), ("TEST", 20, 10)):
        cases = np.arange(first, first + count)
        X = cases[:, None, None] + np.zeros((count, 4, 2)) + [0.25, 0.5]
        header = ["@timeStamps false", "@dimension 2", "@seriesLength 4", "@targetlabel true"]
        write_ts(folder / f"BIDMC32HR_{part}{ending}", X, 60.5 + cases, header)


def test_heart_rates_are_targets(tmp_path):
    heart_rates(tmp_path)
    parts = load_heart_rate(data_home=tmp_path, verify=False)
    assert [len(data.y) for data in parts.values()] == [21, 4, 5]
    for data in parts.values():
        assert data.labels == ()
        assert data.y.dtype == np.float64
        np.testing.assert_array_equal(data.X[:, 0, 0], data.y - 60.25)  # PPG, then ECG
        np.testing.assert_array_equal(data.X[:, 3, 1], data.y - 60)
    with pytest.raises(ValueError, match="7949 cases of 4000 steps"):
        load_heart_rate(data_home=tmp_path)


def test_heart_rates_are_read_out_of_the_archive_of_all_problems(tmp_path):
    heart_rates(tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    with zipfile.ZipFile(home / "Monash_UEA_UCR_Regression_Archive.zip", "w") as archive:
        for part in ("TRAIN", "TEST"):
            archive.write(tmp_path / f"BIDMC32HR_{part}.ts", f"all/BIDMC32HR/BIDMC32HR_{part}.ts")
            archive.writestr(f"all/PPGDalia/PPGDalia_{part}.ts", "")
    parts = load_heart_rate(data_home=home, verify=False)
    expected = load_heart_rate(data_home=tmp_path, verify=False)
    np.testing.assert_array_equal(parts["test"].X, expected["test"].X)


def test_classes_in_place_of_heart_rates_are_refused(tmp_path):
    for part in ("TRAIN", "TEST"):
        write_ts(tmp_path / f"BIDMC32HR_{part}.ts", np.zeros((9, 4, 2)), ["a"] * 9,
                 ["@dimension 2", "@classLabel true a"])  # fmt: skip
    with pytest.raises(ValueError, match="must have a target each"):
        load_heart_rate(data_home=tmp_path, verify=False)
    for part in ("TRAIN", "TEST"):
        write_ts(tmp_path / f"EigenWorms_{part}.ts", np.zeros((9, 4, 2)), [1] * 9,
                 ["@dimension 2", "@targetLabel true"])  # fmt: skip
    with pytest.raises(ValueError, match="must have a class label each"):
        load_eigenworms(data_home=tmp_path, verify=False)


def write_wav(path, samples, channels=1, width=2, rate=16_000):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(np.asarray(samples, "<i2").tobytes())


@pytest.fixture
def spoken(tmp_path):
    """Folder of clips: two of every known word for training, one for validation and test."""
    generator = np.random.default_rng(0)
    lists = {"validation": [], "testing": []}
    for word in (*WORDS, "cat", "dog"):
        (tmp_path / word).mkdir()
        for i, part in enumerate(("train", "train", "validation", "testing")):
            name = f"{word}/{i:08x}_nohash_0.wav"
            write_wav(tmp_path / name, generator.integers(-9_000, 9_000, 16_000 - 500 * i))
            if part in lists:
                lists[part].append(name)
    for part, names in lists.items():
        (tmp_path / f"{part}_list.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
    (tmp_path / "_background_noise_").mkdir()
    for name in ("pink_noise", "white_noise"):
        path = tmp_path / "_background_noise_" / f"{name}.wav"
        write_wav(path, generator.integers(-9_000, 9_000, 40_000))
    (tmp_path / "LICENSE").write_text("CC BY 4.0")
    return tmp_path


def samples_of(path):
    with wave.open(str(path), "rb") as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2") / 2**15


def test_clips_are_labelled_as_in_the_code_of_the_paper(spoken):
    parts = load_google12(data_home=spoken, verify=False)
    assert list(parts) == ["train", "validation", "test"]
    for part, (each, silence) in {"train": (2, 2), "validation": (1, 0), "test": (1, 0)}.items():
        data = parts[part]
        assert data.X.shape == (12 * each + silence, 126, 80)
        assert data.X.dtype == np.float32
        counts = dict(zip(*np.unique(data.y, return_counts=True), strict=True))
        expected = dict.fromkeys(WORDS, each) | {"unknown": 2 * each}
        assert counts == expected | ({"silence": silence} if silence else {})
        assert data.labels == (*WORDS, "unknown", "silence")
    test = parts["test"]
    clip = np.pad(samples_of(spoken / "go" / "00000003_nohash_0.wav"), (0, 1_500))
    np.testing.assert_allclose(test.X[test.y == "go"][0], speech_features(clip), atol=1e-5)
    train = parts["train"]
    noise = samples_of(spoken / "_background_noise_" / "pink_noise.wav")[:16_000]
    np.testing.assert_allclose(train.X[train.y == "silence"][0], speech_features(noise), atol=1e-5)


def test_balanced_parts_have_a_tenth_of_unknown_words_and_of_silence(spoken):
    parts = load_google12(data_home=spoken, verify=False, balanced=True, features="mfcc")
    for part, each in {"train": 2, "validation": 1, "test": 1}.items():
        counts = dict(zip(*np.unique(parts[part].y, return_counts=True), strict=True))
        assert counts == dict.fromkeys(WORDS, each) | {"unknown": each, "silence": each}
        assert parts[part].X.shape[1:] == (126, 40)
    same, other = (
        load_google12(data_home=spoken, verify=False, balanced=True, features="mfcc",
                      random_state=seed)["train"] for seed in (0, 1)
    )  # fmt: skip
    np.testing.assert_array_equal(same.X, parts["train"].X)
    assert not np.array_equal(other.X[-1], same.X[-1])


def damage_list(folder):
    with (folder / "testing_list.txt").open("a", encoding="utf-8") as file:
        file.write("yes/lost.wav\n")


def list_twice(folder):
    first = (folder / "testing_list.txt").read_text(encoding="utf-8").split()[0]
    with (folder / "validation_list.txt").open("a", encoding="utf-8") as file:
        file.write(f"{first}\n")


def cut(folder):
    path = folder / "go" / "00000000_nohash_0.wav"
    path.write_bytes(path.read_bytes()[:5_001])


def remove_noise(folder):
    for path in (folder / "_background_noise_").iterdir():
        path.unlink()


CLIP = "up/00000001_nohash_0.wav"
DAMAGE = {
    "a list with a clip that is not there": (damage_list, FileNotFoundError, r"1 of the .*lost"),
    "a clip in both lists": (list_twice, ValueError, "1 are in both"),
    "a cut file": (cut, ValueError, "must have as many samples as it says"),
    "no WAV file": (lambda f: (f / CLIP).write_bytes(b"RIFF"), ValueError, "no complete WAV file"),
    "an empty clip": (lambda f: write_wav(f / CLIP, []), ValueError, "at least one"),
    "two channels": (
        lambda f: write_wav(f / CLIP, [0] * 8, channels=2), ValueError, "got 2 channels"
    ),
    "another rate": (lambda f: write_wav(f / CLIP, [0] * 8, rate=8_000), ValueError, "at 8000 Hz"),
    "8 bits": (lambda f: write_wav(f / CLIP, [0] * 8, width=1), ValueError, "of 8 bits"),
    "a long clip": (lambda f: write_wav(f / CLIP, [1] * 16_001), ValueError, "at most 16000"),
    "no noise": (remove_noise, ValueError, "WAV files of at least a second; got 0 files"),
    "a list in another encoding": (
        lambda f: (f / "testing_list.txt").write_bytes(b"yes/\xe9.wav\n"), ValueError,
        r"testing_list\.txt must be a text in UTF-8",
    ),
    "no list": (
        lambda f: (f / "testing_list.txt").unlink(), FileNotFoundError, "lacks testing_list"
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGE)
def test_damaged_clips_are_refused(spoken, what):
    damage, error, message = DAMAGE[what]
    damage(spoken)
    with pytest.raises(error, match=message):
        load_google12(data_home=spoken, verify=False)


def test_an_empty_list_gives_an_empty_part_of_the_same_types(spoken):
    (spoken / "testing_list.txt").write_text("")
    parts = load_google12(data_home=spoken, verify=False)
    assert parts["test"].X.shape == (0, 126, 80)
    assert parts["test"].y.shape == (0,)
    assert parts["test"].y.dtype.kind == parts["train"].y.dtype.kind == "U"


def test_other_numbers_of_clips_are_refused_unless_asked_for(spoken):
    with pytest.raises(ValueError, match=r"84843 clips.* has 24, 12 and 12.*verify=False"):
        load_google12(data_home=spoken)


def test_too_few_unknown_clips_to_balance_are_refused(spoken):
    for word in ("cat", "dog"):
        (spoken / word / "00000000_nohash_0.wav").unlink()
        (spoken / word / "00000001_nohash_0.wav").unlink()
    with pytest.raises(ValueError, match="needs 2 clips of other words"):
        load_google12(data_home=spoken, verify=False, balanced=True)


def direct_amplitudes(samples):
    """Amplitudes (frames, 513) by the sum of the Fourier transform, sample by sample."""
    n = np.arange(1024)
    window = np.sin(np.pi * n / 1024) ** 2
    transform = np.exp(-2j * np.pi * np.outer(np.arange(513), n) / 1024)
    frames = []
    for t in range(len(samples) // 128 + 1):
        places = 128 * t - 512 + n
        inside = (places >= 0) & (places < len(samples))
        frames.append(np.where(inside, samples[np.where(inside, places, 0)], 0))
    return np.abs(np.array(frames) * window @ transform.T)


def direct_triangle(f, left, top, right):
    """Height at frequency f of a triangle of area 1."""
    if left < f <= top:
        return 2 / (right - left) * (f - left) / (top - left)
    return 2 / (right - left) * (right - f) / (right - top) if top < f < right else 0.0


def direct_features(samples, features):
    """Sums over frequencies and bands written out."""
    bands = {"mel": 80, "mfcc": 40}[features]
    low, high = 40 / (200 / 3), 15 + 27 * np.log(8) / np.log(6.4)  # mel of 40 Hz and of 8 kHz
    mel = [low + (high - low) * i / (bands + 1) for i in range(bands + 2)]
    edges = [m * 200 / 3 if m < 15 else 1000 * 6.4 ** ((m - 15) / 27) for m in mel]
    weights = [
        [direct_triangle(16_000 * k / 1024, *edges[b : b + 3]) for k in range(513)]
        for b in range(bands)
    ]
    energies = direct_amplitudes(samples) @ np.array(weights).T
    values = 10 * np.log10(np.maximum(energies, 1e-10))
    values = np.maximum(values, values.max() - 80)
    if features == "mfcc":
        k, b = np.arange(40)[:, None], np.arange(40)
        cosine = np.cos(np.pi * k * (b + 0.5) / 40) * np.sqrt(np.where(k == 0, 1, 2) / 40)
        values = values @ cosine.T
    return (values - values.mean()) / values.std()


@pytest.mark.parametrize(
    ("features", "length", "scale"),
    [("mel", 700, 0.1), ("mfcc", 700, 0.1), ("mel", 1, 1.0), ("mfcc", 128, 1e-9)],
)
def test_features_are_those_of_sums_written_out(features, length, scale):
    samples = scale * np.random.default_rng(length).standard_normal(length)
    expected = direct_features(samples, features)
    np.testing.assert_allclose(speech_features(samples, features), expected, rtol=1e-7, atol=1e-7)


def test_a_tone_is_loudest_in_its_band():
    time = np.arange(16_000) / 16_000
    loudest = [
        speech_features(np.sin(2 * np.pi * f * time))[20:100].mean(0).argmax()
        for f in (200, 500, 1_000, 2_000, 4_000)
    ]
    assert all(low < high for low, high in itertools.pairwise(loudest))
    quiet, loud = (speech_features(a * np.sin(440 * time)) for a in (0.01, 1))
    np.testing.assert_allclose(quiet, loud, atol=1e-6)


def test_silence_has_one_level():
    assert not speech_features(np.zeros(16_000)).any()
    cepstrum = speech_features(np.zeros(16_000), "mfcc")
    assert np.ptp(cepstrum[:, 0]) < 1e-6
    assert np.ptp(cepstrum[:, 1:]) < 1e-6


@pytest.mark.parametrize(
    "samples",
    [
        [], [[1.0, 2.0]], [np.nan] * 4, [0.0, np.inf], np.zeros((0, 3)), "abc", ["1", "2"], None,
        [[1.0], [1.0, 2.0]],
    ],
)  # fmt: skip
def test_features_of_anything_but_finite_samples_are_refused(samples):
    with pytest.raises(ValueError, match="samples must be finite numbers of shape"):
        speech_features(samples)


@pytest.mark.parametrize("features", ["MEL", None, 3, ["mel"]])
def test_unknown_features_are_refused(features, tmp_path):
    for call in (lambda: speech_features([0.0], features),
                 lambda: load_google12(data_home=tmp_path, features=features)):  # fmt: skip
        with pytest.raises(ValueError, match=r"features must be one of \['mel', 'mfcc'\]"):
            call()


def test_examples():
    for name in ("_long_sequences", "_speech"):
        module = importlib.import_module(f"tsrnn.datasets.{name}")
        assert doctest.testmod(module).failed == 0
