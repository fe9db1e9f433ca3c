"""Methods are built from specifications, and wrong ones raise errors that name the choices."""

import pytest

import sparcml
from sparcml import aggregate, quantize, sparsify
from sparcml.aggregate import METHODS, as_method, method_syntax, parse_method
from sparcml.quantize.base import QUANTIZERS
from sparcml.sparsify.base import SPARSIFIERS


def test_a_sparsifier_and_a_quantizer_give_compressed():
    both = sparcml.Compressed(sparcml.TopK(0.01), sparcml.QSGD(4))
    assert parse_method("topk:0.01, qsgd:4") == both
    assert parse_method("qsgd:4,topk:0.01") == both
    assert parse_method("onebit") == sparcml.Compressed(quantize=sparcml.OneBit())


def test_a_registered_method_is_built_by_its_own_class():
    assert parse_method("dense") == sparcml.Dense()
    assert parse_method("dgc:0.01") == sparcml.DGC(ratio=0.01)
    assert parse_method("powersgd:2") == sparcml.PowerSGD(rank=2)
    assert parse_method("powersgd") == sparcml.PowerSGD()


def test_a_bare_quantizer_or_sparsifier_gets_error_feedback():
    warm = sparcml.Schedule.warm_up(0.01, 10)
    for given, method in (
        (sparcml.Dense(), sparcml.Dense()),
        (sparcml.QSGD(4), sparcml.Compressed(quantize=sparcml.QSGD(4))),
        (sparcml.TopK(0.1), sparcml.Compressed(sparcml.TopK(0.1))),
        (warm, sparcml.Compressed(warm)),
    ):
        assert as_method("f", given) == method
    with pytest.raises(TypeError, match=r"f: method must be a method such .* got 0\.5"):
        as_method("f", 0.5)


def test_methods_are_printed_without_defaults():
    method = sparcml.Compressed(sparcml.TopK(0.05), sparcml.QSGD(4), seed=3)
    assert str(method) == (
        "Compressed(sparsify=TopK(ratio=0.05), quantize=QSGD(bits=4), seed=3)"
    )
    assert str(sparcml.Dense()) == "Dense()"
    names = vars(aggregate) | vars(quantize) | vars(sparsify)
    for m in (m for family in METHODS.values() for m in family.examples()):
        assert eval(str(m), names) == m


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("half:3", "'half:3' is invalid: .* got '3'"),
        ("topk:x", "RATIO must be a number, got 'x'"),
        ("dense:1", "option must be empty, got '1'"),
        ("dgc:x", "RATIO must be a number, got 'x'"),
        ("powersgd:1.5", "RANK must be an integer, got '1.5'"),
        ("topk:0.1,topk:0.2", "topk:RATIO"),
        ("dense,qsgd:4", "text must be"),
        ("", "text must be"),
    ],
)
def test_wrong_specifications_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_method(text)


def test_the_syntax_lists_every_registered_name():
    for registry in (METHODS, SPARSIFIERS, QUANTIZERS):
        for name, plug_in in registry.items():
            selectable = getattr(plug_in, "selectable", True)
            assert (name in method_syntax()) == (selectable and name != "compressed")
