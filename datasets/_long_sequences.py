"""Long sequences of the papers: motion of worms, heart rates, and spoken words."""

from __future__ import annotations

import math
import os
import wave
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tsrnn.datasets._checks import check_at_least
from tsrnn.datasets._files import as_folder
from tsrnn.datasets._speech import FEATURES, HOP, RATE, check_features, speech_features
from tsrnn.datasets._ts_files import LabelledSequences, read_ts

PARTS = ("train", "validation", "test")
WORDS = ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")
GOOGLE12 = (*WORDS, "unknown", "silence")
NOISE = "_background_noise_"
LISTS = {"validation": "validation_list.txt", "test": "testing_list.txt"}
SPEECH_URL = "http://download.tensorflow.org/data/speech_commands_v0.02.tar.gz"


class ArchiveProblem(NamedTuple):
    """Facts of a published problem, and the sizes of its parts in the papers."""

    name: str
    archives: tuple[str, ...]  # zip files with the problem
    url: str
    steps: int
    dimensions: int
    classes: int  # 0 for numeric targets
    sizes: tuple[int, int, int]  # train, validation, test


EIGENWORMS = ArchiveProblem(
    "EigenWorms", ("EigenWorms.zip",), "https://www.timeseriesclassification.com",
    17_984, 6, 5, (181, 39, 39),
)  # fmt: skip
HEART_RATE = ArchiveProblem(
    "BIDMC32HR", ("BIDMC32HR.zip", "Monash_UEA_UCR_Regression_Archive.zip"),
    "https://zenodo.org/record/3902651", 4_000, 2, 0, (5_565, 1_192, 1_192),
)  # fmt: skip


def load_eigenworms(
    *, data_home: str | os.PathLike[str], random_state: int = 1234, verify: bool = True
) -> dict[str, LabelledSequences]:
    """Load the motion of 259 worms, wild type or four mutants, 17,984 steps of 6 variables.

    As in the papers, all cases of the archive are pooled and split at random, 70 percent for
    training and 15 percent each for validation and test.

    Parameters
    ----------
    data_home : path
        Folder with ``EigenWorms_TRAIN.ts`` and ``EigenWorms_TEST.ts``, plain or with ``.gz``,
        directly or in a folder ``EigenWorms``, or with the published ``EigenWorms.zip``. There is
        no download.
    random_state : int, default 1234
        Seed of the split. The code of Rusch et al. (2022) uses 1234. The split is the same if the
        ``.ts`` files have the order of the ``.arff`` files, which that code reads.
    verify : bool, default True
        Refuse files with other numbers of cases, steps, dimensions or classes than published.
        False splits any number of cases in the same shares.

    Returns
    -------
    dict of LabelledSequences
        ``train`` (181 cases), ``validation`` (39) and ``test`` (39), in this order. Values are not
        scaled, as in both papers.

    Raises
    ------
    ValueError
        If a file is damaged or not the published one.
    TypeError
        If `data_home` is no path.
    FileNotFoundError
        If `data_home` holds no such files; the message says where they are published.

    References
    ----------
    Bagnall et al. (2018), The UEA multivariate time series classification archive, 2018.
    Morrill, Salvi, Kidger and Foster (2021), Neural Rough Differential Equations for Long Time
    Series. Rusch and Mishra (2021), UnICORNN. Rusch, Mishra, Erichson and Mahoney (2022), Long
    Expressive Memory for Sequence Modeling.

    Examples
    --------
    >>> from tsrnn.datasets import load_eigenworms
    >>> parts = load_eigenworms(data_home="~/data")  # doctest: +SKIP
    >>> parts["train"].X.shape  # doctest: +SKIP
    (181, 17984, 6)
    """
    return _load_split(EIGENWORMS, data_home, random_state, verify)


def load_heart_rate(
    *, data_home: str | os.PathLike[str], random_state: int = 1234, verify: bool = True
) -> dict[str, LabelledSequences]:
    """Load 7,949 pairs of PPG and ECG signals of 4,000 steps, with their heart rates.

    It is the problem BIDMC32HR of the archive of time-series regression, recorded at the Beth
    Israel Deaconess Medical Center. As in the papers, all cases are pooled and split at random, 70
    percent for training and 15 percent each for validation and test.

    Parameters
    ----------
    data_home : path
        Folder with ``BIDMC32HR_TRAIN.ts`` and ``BIDMC32HR_TEST.ts``, plain or with ``.gz``,
        directly or in a folder ``BIDMC32HR``, or with the published
        ``Monash_UEA_UCR_Regression_Archive.zip``. There is no download.
    random_state : int, default 1234
        Seed of the split.
    verify : bool, default True
        Refuse files with other numbers of cases, steps or dimensions than published. False splits
        any number of cases in the same shares.

    Returns
    -------
    dict of LabelledSequences
        ``train`` (5,565 cases), ``validation`` (1,192) and ``test`` (1,192), in this order, with
        targets in beats per minute.

    Raises
    ------
    ValueError
        If a file is damaged or not the published one.
    TypeError
        If `data_home` is no path.
    FileNotFoundError
        If `data_home` holds no such files; the message says where they are published.

    Notes
    -----
    Section 5 of Rusch et al. (2022) mentions PPG data only; their code uses both dimensions. The
    parts have the sizes of that code, but not its split, which uses another generator. The values
    take 0.5 GB.

    References
    ----------
    Tan, Bergmeir, Petitjean and Webb (2020), Monash University, UEA, UCR Time Series Regression
    Archive. Rusch, Mishra, Erichson and Mahoney (2022), Long Expressive Memory for Sequence
    Modeling.

    Examples
    --------
    >>> from tsrnn.datasets import load_heart_rate
    >>> parts = load_heart_rate(data_home="~/data")  # doctest: +SKIP
    >>> parts["test"].X.shape  # doctest: +SKIP
    (1192, 4000, 2)
    """
    return _load_split(HEART_RATE, data_home, random_state, verify)


def _load_split(
    problem: ArchiveProblem, data_home: str | os.PathLike[str], random_state: int, verify: bool
) -> dict[str, LabelledSequences]:
    """Pool the cases of both files of a problem, and split them at random."""
    from sklearn.model_selection import train_test_split  # slow to import

    check_at_least(0, random_state=random_state)
    folder = _folder(data_home, problem.url)
    files = [_read_part(problem, part, folder) for part in ("TRAIN", "TEST")]
    shapes = [file.X.shape[1:] if isinstance(file.X, np.ndarray) else None for file in files]
    if shapes[0] is None or shapes[0] != shapes[1] or files[0].labels != files[1].labels:
        raise ValueError(
            f"{problem.name}_TRAIN.ts and {problem.name}_TEST.ts must have sequences of one shape "
            f"and the same classes; got {shapes[0]} and {shapes[1]}, {list(files[0].labels)} and "
            f"{list(files[1].labels)}. Replace them by the files of {problem.url}"
        )
    X = np.concatenate([file.X for file in files])
    targets = [file.y for file in files if file.y is not None]
    if len(targets) < len(files) or bool(files[0].labels) != bool(problem.classes):
        wanted = "a class label" if problem.classes else "a target"
        raise ValueError(
            f"cases of {problem.name} must have {wanted} each. Replace the files in {folder} by "
            f"those of {problem.url}"
        )
    y, sizes = np.concatenate(targets), problem.sizes
    seen = (len(X), *shapes[0], len(files[0].labels))
    published = (sum(sizes), problem.steps, problem.dimensions, problem.classes)
    if verify and seen != published:
        raise ValueError(
            f"{problem.name} has {published[0]} cases of {published[1]} steps, {published[2]} "
            f"dimensions and {published[3]} classes; the files in {folder} have {seen[0]} of "
            f"{seen[1]}, {seen[2]} and {seen[3]}. Replace them by those of {problem.url}, or pass "
            "verify=False"
        )
    if not verify:
        check_at_least(6, cases=len(X))  # 70 percent of five are four, which leaves a part empty
        train = round(0.7 * len(X))
        sizes = (train, (len(X) - train) // 2, len(X) - train - (len(X) - train) // 2)
    train, rest = train_test_split(
        np.arange(len(X)), train_size=sizes[0], test_size=len(X) - sizes[0],
        random_state=random_state,
    )  # fmt: skip
    validation, test = train_test_split(
        rest, train_size=sizes[1], test_size=sizes[2], random_state=random_state
    )
    return {
        part: LabelledSequences(problem.name, X[cases], y[cases], files[0].labels)
        for part, cases in zip(PARTS, (train, validation, test), strict=True)
    }


def _folder(data_home: str | os.PathLike[str], url: str) -> Path:
    folder = as_folder(data_home)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"data_home must be a folder with the files of {url}; there is no folder {folder}"
        )
    return folder


def _read_part(problem: ArchiveProblem, part: str, folder: Path) -> LabelledSequences:
    file = f"{problem.name}_{part}.ts"
    for home in (folder, folder / problem.name):
        for path in (home / file, home / f"{file}.gz"):
            if path.is_file():
                return read_ts(path)
    for archive in problem.archives:
        if (folder / archive).is_file():
            return read_ts(folder / archive, member=file)
    raise FileNotFoundError(
        f"data_home must hold {file}, {file}.gz or {' or '.join(problem.archives)}; found none in "
        f"{folder} or {folder / problem.name}. It is published at {problem.url}"
    )


def load_google12(
    *,
    data_home: str | os.PathLike[str],
    features: str = "mel",
    balanced: bool = False,
    random_state: int = 0,
    verify: bool = True,
) -> dict[str, LabelledSequences]:
    """Load the 12-label task of Google's Speech Commands V2: ten words, unknown words, silence.

    Clips of a second at 16 kHz give 126 frames of `speech_features`. The lists that come with the
    clips define the parts.

    Parameters
    ----------
    data_home : path
        Folder of the unpacked ``speech_commands_v0.02.tar.gz``, with a folder of WAV files per
        word, ``validation_list.txt``, ``testing_list.txt`` and ``_background_noise_``. There is no
        download.
    features : {"mel", "mfcc"}, default "mel"
        See `speech_features`.
    balanced : bool, default False
        False follows the code of Rusch et al. (2022): all clips of other words are "unknown", and
        silence is the first second of every noise recording, in the training part only. True
        follows Warden (2018): in every part, the numbers of unknown clips and of seconds of noise
        (at random positions and volumes) are each a tenth of the clips of the ten words.
    random_state : int, default 0
        Seed of the choice of clips and noise with ``balanced=True``.
    verify : bool, default True
        Refuse a folder with other numbers of clips than published: 105,829, with 9,981 for
        validation and 11,005 for the test.

    Returns
    -------
    dict of LabelledSequences
        ``train``, ``validation`` and ``test``, in this order, in float32: 4.3 GB with
        ``balanced=False``, 1.9 GB with True.

    Raises
    ------
    ValueError
        If an argument is not legal, a file is damaged or not as published, or counts differ.
    TypeError
        If `data_home` is no path.
    FileNotFoundError
        If `data_home` lacks a folder, a list or a clip of a list; the message says where they are
        published.

    Notes
    -----
    The paper only names the data and the parts; features and labels follow the authors' code, where
    25 of the 35 words, and so most clips, are "unknown".

    References
    ----------
    Warden (2018), Speech Commands: A Dataset for Limited-Vocabulary Speech Recognition.
    Rusch, Mishra, Erichson and Mahoney (2022), Long Expressive Memory for Sequence Modeling.

    Examples
    --------
    >>> from tsrnn.datasets import load_google12
    >>> parts = load_google12(data_home="~/speech_commands")  # doctest: +SKIP
    >>> parts["test"].X.shape  # doctest: +SKIP
    (11005, 126, 80)
    """
    check_features(features)
    check_at_least(0, random_state=random_state)
    folder = _folder(data_home, SPEECH_URL)
    clips = _clips_by_part(folder, verify)
    noise = [_read_wav(path) for path in sorted((folder / NOISE).glob("*.wav"))]
    if not noise or min(map(len, noise)) < RATE:
        raise ValueError(
            f"{folder / NOISE} must hold WAV files of at least a second; got {len(noise)} files. "
            f"They come with {SPEECH_URL}"
        )
    generator = np.random.default_rng(random_state)
    parts = {}
    for part, names in clips.items():
        known = [name for name in names if name.split("/")[0] in WORDS]
        unknown = [name for name in names if name.split("/")[0] not in WORDS]
        silence = [samples[:RATE] for samples in noise] if part == "train" else []
        if balanced:
            count = math.ceil(len(known) / 10)
            if len(unknown) < count:
                raise ValueError(
                    f"balanced=True needs {count} clips of other words for {len(known)} clips of "
                    f"the ten words in the {part} part; there are {len(unknown)}"
                )
            chosen = generator.choice(len(unknown), count, replace=False)
            unknown = [unknown[i] for i in np.sort(chosen)]
            silence = [_random_second(noise, generator) for _ in range(count)]
        y = [*(name.split("/")[0] for name in known), *["unknown"] * len(unknown)]
        names = [*known, *unknown]
        X = np.empty((len(names) + len(silence), RATE // HOP + 1, FEATURES[features]), np.float32)
        for i, name in enumerate(names):
            X[i] = speech_features(_as_clip(folder / name), features)
        for i, samples in enumerate(silence, start=len(names)):
            X[i] = speech_features(samples, features)
        labels = np.array([*y, *["silence"] * len(silence)], dtype=str)  # dtype if empty
        parts[part] = LabelledSequences("Google12", X, labels, GOOGLE12)
    return parts


def _clips_by_part(folder: Path, verify: bool) -> dict[str, list[str]]:
    """Return the sorted names ``word/file.wav`` of the clips of every part."""
    every = {
        f"{path.parent.name}/{path.name}"
        for path in folder.glob("*/*.wav")
        if path.parent.name != NOISE
    }
    absent = [word for word in WORDS if not (folder / word).is_dir()]
    absent += [name for name in (*LISTS.values(), NOISE) if not (folder / name).exists()]
    if absent:
        raise FileNotFoundError(
            f"{folder} must hold the unpacked files of {SPEECH_URL}; it lacks {', '.join(absent)}"
        )
    parts: dict[str, list[str]] = {"train": []}
    for part, name in LISTS.items():
        try:
            parts[part] = sorted((folder / name).read_text(encoding="utf-8").split())
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{folder / name} must be a text in UTF-8; got one that cannot be read ({error}). "
                f"Unpack {SPEECH_URL} once more"
            ) from error
        lost = [clip for clip in parts[part] if clip not in every]
        if lost:
            raise FileNotFoundError(
                f"{len(lost)} of the {len(parts[part])} clips of {name} are not in {folder}, the "
                f"first {lost[0]}. Unpack {SPEECH_URL} once more"
            )
    both = set(parts["validation"]) & set(parts["test"])
    if both:
        raise ValueError(
            f"a clip must be in one list; {len(both)} are in both, the first {min(both)}"
        )
    parts["train"] = sorted(every.difference(parts["validation"], parts["test"]))
    counts = tuple(map(len, parts.values()))
    if verify and counts != (84_843, 9_981, 11_005):
        raise ValueError(
            "Speech Commands V2 has 84843 clips for training, 9981 for validation and 11005 for "
            f"the test; {folder} has {counts[0]}, {counts[1]} and {counts[2]}. Unpack "
            f"{SPEECH_URL} once more, or pass verify=False"
        )
    return parts


def _read_wav(path: Path) -> np.ndarray:
    """Return the samples in [-1, 1) of a WAV file of 16 bits, one channel and 16 kHz."""
    try:
        with wave.open(str(path), "rb") as file:
            kind = (file.getnchannels(), file.getsampwidth(), file.getframerate())
            count, content = file.getnframes(), file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise ValueError(f"{path} is no complete WAV file: {error}. Replace it") from error
    if kind != (1, 2, RATE):
        raise ValueError(
            f"{path} must have one channel of 16 bits at {RATE} Hz; got {kind[0]} channels of "
            f"{8 * kind[1]} bits at {kind[2]} Hz"
        )
    if len(content) != 2 * count or not count:
        raise ValueError(
            f"{path} must have as many samples as it says, at least one; its header says {count}, "
            f"it has {len(content) // 2}. Replace it"
        )
    return np.frombuffer(content, "<i2") / 32_768.0


def _as_clip(path: Path) -> np.ndarray:
    """Return the samples of a clip, padded by zeros to a second."""
    samples = _read_wav(path)
    if len(samples) > RATE:  # a second
        raise ValueError(f"{path} must have at most {RATE} samples; got {len(samples)}")
    return np.pad(samples, (0, RATE - len(samples)))


def _random_second(noise: Sequence[np.ndarray], generator: np.random.Generator) -> np.ndarray:
    """Draw a second of a random recording, at a random position and volume."""
    samples = noise[int(generator.integers(len(noise)))]
    start = generator.integers(len(samples) - RATE + 1)
    return generator.uniform() * samples[start : start + RATE]
