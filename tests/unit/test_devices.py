"""Which device a name means, over tables as real machines show them."""

from __future__ import annotations

import pytest

from rig.acquire.devices import DeviceInfo, argument, choose_device, find_again, quoted
from rig.errors import BenchNotReady, DeviceAmbiguous, DeviceNotFound


def table(*rows: tuple[str, str, int, int]) -> list[DeviceInfo]:
    """Devices from (host API, name, inputs, outputs)."""
    return [DeviceInfo(index, name, api, ins, outs, 48000.0) for index, (api, name, ins, outs) in enumerate(rows)]


WINDOWS = table(
    ("MME", "Line (2- Scarlett 2i2 USB)", 2, 0),
    ("Windows DirectSound", "Line (2- Scarlett 2i2 USB)", 2, 0),
    ("Windows WASAPI", "Line (2- Scarlett 2i2 USB)", 2, 0),
    ("Windows WASAPI", "Speakers (Realtek) [Loopback]", 2, 0),
    ("MME", "Микрофон (Устройство с поддержк", 2, 0),
    ("Windows WASAPI", "Микрофон (Устройство с поддержкой High Definition Audio)", 1, 0),
)
LINUX = table(
    ("ALSA", "HDA Intel PCH: ALC256 Analog (hw:0,0)", 2, 2),
    ("ALSA", "X Alt Analog (hw:1,0)", 2, 2),
    ("ALSA", "X Analog (hw:2,0)", 2, 2),
    ("ALSA", "USB Audio: Codec (hw:3,0)", 2, 2),
    ("ALSA", "USB Audio: Codec (hw:4,0)", 2, 2),
    ("ALSA", "pulse", 32, 32),
    ("ALSA", "default", 32, 32),
    ("PulseAudio", "Monitor of Built-in Audio Analog Stereo", 2, 0),
    ("PulseAudio", "Built-in Audio Analog Stereo", 2, 0),
    ("ALSA", "Webcam (hw:5,0)", 1, 0),
    ("ALSA", "HDMI 0 (hw:0,3)", 0, 8),
    ("ALSA", "Düsenjäger – 2ch", 2, 2),
)


def test_one_card_under_several_host_apis_is_never_picked_silently() -> None:
    with pytest.raises(DeviceAmbiguous) as caught:
        choose_device(WINDOWS, "Line (2- Scarlett 2i2 USB)", 2)
    what = caught.value.what
    for api in ("MME", "Windows DirectSound", "Windows WASAPI"):
        named = f"{api}:Line (2- Scarlett 2i2 USB)"
        assert f'--device "{named}" is index' in what
        assert choose_device(WINDOWS, named, 2).host_api == api, "each argument that is listed works"
    assert "2 in, 0 out, 48000 Hz" in what
    assert choose_device(WINDOWS, "wasapi:scarlett", 2).index == 2, "host API and name may be parts"


def test_an_exact_name_goes_before_one_that_contains_it() -> None:
    assert choose_device(LINUX, "X Analog", 2).index == 2
    assert choose_device(list(reversed(LINUX)), "x analog", 2).index == 2
    assert choose_device(LINUX, "X Analog (hw:2,0)", 2).index == 2
    with pytest.raises(DeviceAmbiguous):
        choose_device(LINUX, "analog", 2)


def test_a_part_of_a_name_is_enough_where_it_is_the_only_one() -> None:
    assert choose_device(LINUX, "ALC256", 2).index == 0
    assert choose_device(LINUX, "hw:2,0", 2).index == 2
    assert choose_device(LINUX, "X Alt", 2).index == 1


def test_two_cards_of_one_model_are_told_apart_by_number() -> None:
    with pytest.raises(DeviceAmbiguous) as caught:
        choose_device(LINUX, "USB Audio: Codec", 2)
    assert "--device 3 is index 3, ALSA" in caught.value.what
    assert "--device 4 is index 4, ALSA" in caught.value.what
    assert choose_device(LINUX, "4", 2).name == "USB Audio: Codec (hw:4,0)"
    assert choose_device(LINUX, "USB Audio: Codec (hw:4,0)", 2).index == 4


def test_what_lacks_the_inputs_does_not_make_a_name_ambiguous() -> None:
    mac = table(("Core Audio", "USB Audio CODEC", 2, 0), ("Core Audio", "USB Audio CODEC", 0, 2))
    assert choose_device(mac, "USB Audio CODEC", 2).index == 0
    assert choose_device(mac, "USB Audio CODEC", 2, outputs=1).index == 0, "it plays through its other entry"


def test_found_without_inputs_is_not_missing() -> None:
    with pytest.raises(DeviceNotFound, match=r"HDMI 0 \(hw:0,3\) was found, but it offers 0 inputs right now"):
        choose_device(LINUX, "HDMI 0", 2)
    with pytest.raises(DeviceNotFound, match=r"Webcam \(hw:5,0\) offers 1 input$"):
        choose_device(LINUX, "Webcam", 2)
    with pytest.raises(DeviceNotFound, match="offers 0 outputs"):
        choose_device(LINUX, "Built-in Audio Analog Stereo", 2, outputs=1)
    with pytest.raises(DeviceNotFound, match="offers 0 inputs"):
        choose_device(LINUX, "10", 2)


@pytest.mark.parametrize("wanted", ["Scarlett", "99", "", " ", "ALSA:", "MME:Codec"])
def test_an_unknown_name_lists_what_there_is(wanted: str) -> None:
    with pytest.raises(DeviceNotFound) as caught:
        choose_device(LINUX, wanted, 2)
    assert f"no audio device answers to {wanted!r}" in caught.value.what
    assert "'X Analog (hw:2,0)'" in caught.value.what
    assert "Webcam" not in caught.value.what, "it has one input"


def test_without_any_device_it_says_so() -> None:
    with pytest.raises(DeviceNotFound, match="no audio devices at all"):
        choose_device([], "anything", 2)


def test_names_in_any_alphabet_whole_or_cut_short() -> None:
    full = "Микрофон (Устройство с поддержкой High Definition Audio)"
    assert choose_device(WINDOWS, full, 2).host_api == "MME", "the whole name has one input, the short one two"
    assert choose_device(WINDOWS, full, 1).host_api == "Windows WASAPI"
    assert choose_device(WINDOWS, "Микрофон (Устройство с поддержк", 2).index == 4
    assert choose_device(LINUX, "DÜSENJÄGER", 2).index == 11
    assert choose_device(LINUX, "Du\u0308senja\u0308ger – 2ch", 2).index == 11, "the other form of the umlaut"


def test_a_colon_in_a_name_is_no_host_api() -> None:
    assert choose_device(LINUX, "HDA Intel PCH: ALC256 Analog", 2).index == 0
    assert choose_device(LINUX, "ALSA:HDA Intel PCH: ALC256 Analog", 2).index == 0


def test_monitors_are_meant_only_when_named_in_full() -> None:
    assert choose_device(LINUX, "Built-in Audio Analog", 2).index == 8
    assert choose_device(LINUX, "Monitor of Built-in Audio Analog Stereo", 2).index == 7


def test_a_loopback_is_refused() -> None:
    with pytest.raises(BenchNotReady, match="delivers nothing while nothing plays"):
        choose_device(WINDOWS, "Speakers (Realtek) [Loopback]", 2)


def test_sound_servers_are_known() -> None:
    assert [d.name for d in LINUX if d.sound_server] == ["pulse", "default"]


def test_a_device_is_found_again_by_name_whatever_its_index() -> None:
    known = LINUX[2]
    assert find_again(list(LINUX[2:]) + list(LINUX[:2]), known) == known
    moved = table(("ALSA", "X Analog (hw:2,0)", 2, 2))
    assert find_again(moved, known) == moved[0]
    assert find_again(LINUX[:2], known) is None
    twins = table(*[("ALSA", "Codec", 2, 2)] * 2)
    assert find_again(twins, twins[1]) == twins[1]
    assert find_again(twins, DeviceInfo(7, "Codec", "ALSA", 2, 2)) is None, "neither is known to be the one"


def test_every_device_has_an_argument_that_means_it() -> None:
    for devices in (WINDOWS, LINUX):
        for device in devices:
            if device.inputs >= 2 and not device.loopback:
                assert choose_device(devices, argument(devices, device), 2) == device


@pytest.mark.parametrize(
    ("text", "typed"), [("3", "3"), ("USB Audio", '"USB Audio"'), ('a "b" $c', '"a \\"b\\" \\$c"'), ("Öl", '"Öl"')]
)
def test_arguments_are_quoted_for_a_shell(text: str, typed: str) -> None:
    assert quoted(text) == typed
