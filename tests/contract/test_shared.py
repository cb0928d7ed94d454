"""Arguments behind `**shared`: in every signature, documented, and refused by the right name."""

import inspect
import pickle
import re

import pytest
from sklearn.base import clone

from tsrnn import (
    ARMA,
    CCC,
    DCC,
    GARCH,
    VARMA,
    VECMGARCH,
    LEMForecaster,
    LRUForecaster,
    NewtonForecaster,
    ParaRNNForecaster,
)
from tsrnn.contract import CommonArguments, with_shared_arguments

LINEAR = (ARMA, CCC, DCC, GARCH, VARMA, VECMGARCH)
RECURRENT = (LEMForecaster, LRUForecaster, NewtonForecaster, ParaRNNForecaster)
COMMON = list(inspect.signature(CommonArguments).parameters)


@with_shared_arguments
class Base(CommonArguments):
    def __init__(self, horizon=None, *, size=1, kind="a", **shared):
        super().__init__(horizon=horizon, **shared)
        self.size, self.kind = size, kind


@with_shared_arguments
class Own(Base):
    def __init__(self, order, kind="b", **shared):
        super().__init__(kind=kind, **shared)
        self.order = order


class Derived(Own):
    def __init__(self, **anything):
        super().__init__(0, **anything)


def documented(cls):
    """Return the names in the parameter list of a docstring."""
    section = inspect.getdoc(cls).split("Parameters\n----------\n")[1]
    lines = re.split(r"\n\n(?=\S)", section)[0].splitlines()  # lists in an entry are indented
    heads = [line for line in lines if line and not line.startswith(" ")]
    return {name for line in heads for name in line.partition(" : ")[0].replace(",", "").split()}


def test_own_arguments_come_first_with_their_own_defaults():
    found = inspect.signature(Own).parameters
    common = [name for name in COMMON if name != "horizon"]
    assert list(found) == ["order", "kind", "horizon", "size", *common]
    assert found["kind"].default == "b"
    assert found["horizon"].kind is inspect.Parameter.KEYWORD_ONLY
    assert found["order"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD


def test_arguments_are_described_where_they_are_shared():
    @with_shared_arguments
    class Described(CommonArguments):
        """Class with an order.

        Parameters
        ----------
        order : int
            Of its own.
        freq : str
            Other than elsewhere.
        **shared
            As in all forecasters.

        Examples
        --------
        """

        def __init__(self, order, **shared):
            super().__init__(**shared)
            self.order = order

    lines = inspect.cleandoc(Described.__doc__).splitlines()
    assert [line for line in lines if line.startswith("freq")] == ["freq : str"]
    assert lines[lines.index("verbose : int") + 2 :][:2] == ["", "Examples"]
    heads = {line.partition(" : ")[0] for line in lines if " : " in line}
    assert {"order", *COMMON} == heads - {"id_col, time_col"} | {"id_col", "time_col"}


def test_every_argument_reaches_the_class_that_stores_it():
    given = {name: object() for name in inspect.signature(Own).parameters}
    assert vars(Own(**given)) == given
    assert vars(Own(1)) == {
        name: 1 if name == "order" else p.default
        for name, p in inspect.signature(Own).parameters.items()
    }


@pytest.mark.parametrize("cls", [*LINEAR, *RECURRENT])
def test_scikit_learn_reads_all_of_them(cls):
    given = {name: f"a {name}" for name in inspect.signature(cls).parameters}
    assert set(COMMON) < set(given)
    model = cls(**given)
    assert model.get_params() == vars(model) == given
    assert clone(model).get_params() == given
    assert pickle.loads(pickle.dumps(model)).get_params() == given


@pytest.mark.parametrize("cls", [*LINEAR, *RECURRENT])
def test_help_documents_all_of_them(cls):
    names = documented(cls)
    if "**shared" in names:
        assert "All other arguments are those of `ParaRNNForecaster`." in cls.__doc__
        names = names - {"**shared"} | documented(ParaRNNForecaster)
        assert set(inspect.signature(cls).parameters) <= names
    else:
        assert set(inspect.signature(cls).parameters) == names


@pytest.mark.parametrize(
    ("cls", "name", "advice"),
    [
        (ParaRNNForecaster, "hiden_size", "did you mean 'hidden_size'?"),
        (ParaRNNForecaster, "max_epoch", "did you mean 'max_epochs'?"),
        (LEMForecaster, "colour", "help(LEMForecaster) lists those there are"),
        (NewtonForecaster, "block_size", "help(NewtonForecaster) lists those there are"),
        (NewtonForecaster, "epochs", "did you mean 'max_epochs'?"),
        (ARMA, "trends", "did you mean 'trend'?"),
        (DCC, "garchorder", "did you mean 'garch_order'?"),
        (VARMA, "hidden_size", "help(VARMA) lists those there are"),
        (Derived, "sizes", "did you mean 'size'?"),
    ],
)
def test_an_unknown_argument_is_named_with_the_class_that_was_called(cls, name, advice):
    with pytest.raises(TypeError) as caught:
        cls(**{name: 3})
    expected = f"{cls.__name__}() got an unexpected argument {name!r}; {advice}"
    assert str(caught.value) == expected


def test_itself_is_no_advice():
    with pytest.raises(TypeError, match="did you mean 'size'"):
        Own(1, sie=2)
    with pytest.raises(TypeError, match="help.Own. lists"):
        Own(1, selv=2)
