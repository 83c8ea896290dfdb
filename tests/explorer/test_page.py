"""The page in a real browser: what is on the screen is what the formulas say."""

import re

import numpy as np
import pytest
from looking import Fingers, drag_mouse, picture, settle, spot, stage_box, to_disk, to_screen, translation

from h2hgcn.embeddings.disk import DiskProjection
from h2hgcn.explorer import make_scene

# one point of each colour, so that it can be found on the screen
SPOTS = {"blue": 0.3 + 0.2j, "orange": -0.5 + 0.1j, "green": 0.1 - 0.6j}


def spots_scene(points, **options):
    disk = [[point.real, point.imag] for point in points.values()]
    given = {"labels": ["a", "b", "c"][: len(disk)], "space": "poincare", "title": "Spots"}
    return make_scene(disk, list(points), **given | options)


@pytest.fixture(scope="session")
def spots(serve):
    return serve(spots_scene(SPOTS, edges=[[0, 1], [1, 2]]))


def near(first, second, pixels=1.0):
    assert abs(first - second) <= pixels, f"{first} is not {second}"


def test_the_page_tells_what_it_shows(open_page, address):
    page = open_page(address)
    assert page.inner_text("#title") == "A <b>tree</b>"
    assert page.inner_text("#counts") == "121 nodes · 120 links · dimension 2"
    assert "All hyperbolic distances are true" in page.inner_text("#note")
    assert page.locator("#legend li").all_inner_texts()[0].split() == ["branch", "0", "40"]
    assert page.inner_text("#status") == ""
    assert len(np.unique(picture(page).reshape(-1, 3), axis=0)) > 50
    assert "SwiftShader" in page.get_attribute("html", "data-renderer")


def test_points_are_where_their_coordinates_say(open_page, spots):
    page = open_page(spots)
    for colour, point in SPOTS.items():
        near(spot(page, colour), to_screen(page, point))


def test_a_drag_is_the_mobius_translation(open_page, spots):
    page = open_page(spots)
    begin, end = to_screen(page, SPOTS["blue"]), to_screen(page, -0.4 - 0.3j)
    drag_mouse(page, begin, end)
    near(spot(page, "blue"), end)
    moved = translation(to_disk(page, begin), to_disk(page, end))
    for colour, point in SPOTS.items():
        near(spot(page, colour), to_screen(page, moved(point)))


def test_many_drags_do_not_drift_and_the_link_restores_them(open_page, spots):
    page = open_page(spots)
    random = np.random.default_rng(0)
    points = dict(SPOTS)
    for _ in range(10):
        begin, end = (to_screen(page, complex(*random.uniform(-0.4, 0.4, 2))) for _ in range(2))
        begin, end = (complex(round(place.real), round(place.imag)) for place in (begin, end))
        drag_mouse(page, begin, end, steps=2)
        moved = translation(to_disk(page, begin), to_disk(page, end))
        points = {colour: moved(point) for colour, point in points.items()}
    nearest = min(points, key=lambda colour: abs(points[colour]))
    near(spot(page, nearest), to_screen(page, points[nearest]))
    page.click("#copy-link")
    again = open_page(page.url)
    settle(again)
    near(spot(again, nearest), to_screen(again, points[nearest]))


def test_the_wheel_zooms_about_the_pointer(open_page, spots):
    page = open_page(spots)
    exact, box = to_screen(page, SPOTS["orange"]), stage_box(page)
    place = complex(round(exact.real), round(exact.imag))  # wheels are told in whole pixels
    page.mouse.move(box["x"] + place.real, box["y"] + place.imag)
    page.mouse.wheel(0, -300)
    settle(page)
    near(spot(page, "orange"), place, 2.0)
    zoom = np.exp(0.45)
    moved = translation(to_disk(page, place), to_disk(page, place) / zoom)
    near(spot(page, "blue"), to_screen(page, moved(SPOTS["blue"]), zoom))


def test_two_fingers_zoom_and_move(open_page, spots):
    page = open_page(spots, has_touch=True)
    fingers = Fingers(page)
    begin = complex(round(stage_box(page)["width"] / 2) - 40, round(stage_box(page)["height"] / 2) + 30)
    fingers.put(one=begin - 60)
    fingers.put(one=begin - 60, two=begin + 60)
    end = begin + 70 - 20j
    for share in (0.5, 1.0):
        apart = 60 + 60 * share
        middle = begin + share * (end - begin)
        fingers.put(one=middle - apart, two=middle + apart)
    moved = translation(to_disk(page, begin), to_disk(page, end, 2.0))
    for colour in ("blue", "orange"):
        near(spot(page, colour), to_screen(page, moved(SPOTS[colour]), 2.0), 1.5)
    # the finger that stays drags, and lifting it chooses nothing
    fingers.put(one=end - 120)
    fingers.put(one=end - 120 + 40j)
    dragged = translation(to_disk(page, end - 120, 2.0), to_disk(page, end - 120 + 40j, 2.0))
    near(spot(page, "orange"), to_screen(page, dragged(moved(SPOTS["orange"])), 2.0), 1.5)
    fingers.put()
    assert page.locator("#node h2").count() == 0
    place = spot(page, "orange")
    fingers.put(one=place)
    fingers.put()
    page.locator("#node h2", has_text="orange").wait_for()


def test_a_second_finger_ends_a_lasso_and_the_wheel_goes_with_a_drag(open_page, spots):
    page = open_page(spots, has_touch=True)
    fingers = Fingers(page)
    page.click("#lasso")
    fingers.put(one=100 + 100j)
    fingers.put(one=300 + 100j)
    fingers.put(one=300 + 100j, two=400 + 300j)
    fingers.put()
    assert page.locator("#selection").is_hidden()
    page.click("#lasso")
    page.click("#home")
    settle(page)
    place, box = to_screen(page, SPOTS["blue"]), stage_box(page)
    page.mouse.move(box["x"] + place.real, box["y"] + place.imag)
    page.mouse.down()
    page.mouse.move(box["x"] + place.real + 30, box["y"] + place.imag)
    page.mouse.wheel(0, -300)
    page.mouse.move(box["x"] + place.real + 60, box["y"] + place.imag + 10)
    settle(page)
    near(spot(page, "blue"), place + 60 + 10j, 2.0)
    page.mouse.up()


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_a_click_centres_a_node(open_page, spots, motion):
    page = open_page(spots, reduced_motion=motion)
    place = to_screen(page, SPOTS["green"])
    page.mouse.click(stage_box(page)["x"] + place.real, stage_box(page)["y"] + place.imag)
    page.locator("#live", has_text="Centered on green").wait_for(state="attached")
    settle(page)
    near(spot(page, "green"), to_screen(page, 0j))
    moved = translation(SPOTS["green"], 0j)
    near(spot(page, "orange"), to_screen(page, moved(SPOTS["orange"])))
    assert page.inner_text("#node h2") == "green"


def test_points_that_float32_cannot_tell_apart_are_seen_apart(open_page, serve):
    deep = np.tanh(20 / 2)
    angle = 2 * np.arcsinh(np.sinh(0.5) / np.sinh(20))
    points = {"blue": deep + 0j, "orange": deep * np.exp(1j * angle), "green": 0j}
    assert np.float32(points["blue"].real) == 1
    page = open_page(serve(spots_scene(points)))
    page.fill("#search", "blue")
    page.press("#search", "Enter")
    settle(page)
    near(spot(page, "blue"), to_screen(page, 0j))
    apart = abs(to_disk(page, spot(page, "orange")))
    assert 2 * np.arctanh(apart) == pytest.approx(1.0, abs=0.01)


def test_search(open_page, address, scene):
    page = open_page(address)
    page.keyboard.press("/")
    page.keyboard.type("N12")
    options = page.locator("#found li")
    assert [text.split()[0] for text in options.all_inner_texts()] == ["n12", "n120"]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.inner_text("#node h2") == "n120"
    assert "Centered on n120" in page.text_content("#live")
    page.fill("#search", "nobody")
    assert page.inner_text("#found") == "no such id"


def listed(page, kind):
    rows = page.locator(f"#{kind} ol button")
    return [re.split(r"\s+", text.strip()) for text in rows.all_inner_texts()]


def test_neighbors_and_likely_links(open_page, address, scene):
    page = open_page(f"{address}#node=n7")
    for kind in ("neighbors", "links"):  # two answers of the server, in any order
        page.wait_for_selector(f"#{kind} ol button")
        wanted = scene.nearest.near(kind, 7, 10)
        rows = listed(page, kind)
        assert [row[0] for row in rows] == [f"n{entry['node']}" for entry in wanted]
        assert [row[1] for row in rows] == [f"{entry['probability']:.3f}" for entry in wanted]
        assert [row[2] for row in rows] == [f"{entry['distance']:.3f}" for entry in wanted]
    page.locator("#links ol button").nth(2).click()
    page.locator("#node h2", has_text=f"n{wanted[2]['node']}").wait_for()


def test_colours(open_page, spots):
    page = open_page(spots)
    before = picture(page)
    page.select_option("#colour", label="radius")
    page.wait_for_selector("#legend .ramp")
    settle(page)
    assert np.abs(picture(page) - before).sum() > 0
    low, _, high = page.locator("#legend .ticks span").all_inner_texts()
    radii = [2 * np.arctanh(abs(point)) for point in SPOTS.values()]
    assert (float(low), float(high)) == pytest.approx((min(radii), max(radii)), abs=0.005)


def test_hover_tells_about_a_node(open_page, spots):
    page = open_page(spots)
    place, box = to_screen(page, SPOTS["orange"]), stage_box(page)
    page.mouse.move(box["x"] + place.real + 2, box["y"] + place.imag - 2)
    page.wait_for_selector("#card:not([hidden])")
    told = page.inner_text("#card").split()
    assert told == ["orange", "label", "b", "radius", f"{2 * np.arctanh(abs(SPOTS['orange'])):.2f}", "degree", "2"]
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.wait_for_selector("#card", state="hidden")


def test_the_keyboard(open_page, spots):
    page = open_page(spots)
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "stage"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    settle(page)
    step = np.tanh(0.25)  # two steps of a quarter
    near(spot(page, "orange"), to_screen(page, translation(0j, -step + 0j)(SPOTS["orange"])))
    page.keyboard.press("+")
    settle(page)
    near(spot(page, "orange"), to_screen(page, translation(0j, -step + 0j)(SPOTS["orange"]), 1.25))
    page.keyboard.press("Home")
    settle(page)
    near(spot(page, "orange"), to_screen(page, SPOTS["orange"]))
    page.keyboard.press("Enter")
    assert page.inner_text("#node h2") == "blue"
    page.keyboard.press("Escape")
    assert page.locator("#node h2").count() == 0
    page.keyboard.press("?")
    assert page.locator("#keys[open]").count() == 1
    page.keyboard.press("Escape")
    reached = set()
    for _ in range(24):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    assert {"zoom-in", "lasso", "save-png", "search", "colour"} <= reached


def test_lasso_and_ids(open_page, address):
    page = open_page(address)
    page.click("#lasso")
    box = stage_box(page)
    corners = [to_screen(page, place) for place in (0.01 + 0.99j, -0.99 + 0.99j, -0.99 - 0.99j, 0.01 - 0.99j)]
    page.mouse.move(box["x"] + corners[0].real, box["y"] + corners[0].imag)
    page.mouse.down()
    for corner in corners[1:]:
        page.mouse.move(box["x"] + corner.real, box["y"] + corner.imag)
    page.mouse.up()
    settle(page)
    with page.expect_download() as saved:
        page.click("#save-ids")
    ids = saved.value.path().read_text().split()
    disk = page.evaluate(
        "fetch('api/buffers/points').then((a) => a.arrayBuffer()).then((b) => [...new Float64Array(b)])"
    )
    inside = [f"n{k}" for k, x in enumerate(disk[::2]) if x < 0.01]
    assert sorted(ids) == sorted(inside)
    assert page.inner_text("#selected") == f"{len(inside)} of 121 nodes selected"
    page.click("#clear")
    assert page.locator("#selection").is_hidden()
    page.click("#legend li:first-child button")
    assert page.inner_text("#selected") == "40 of 121 nodes are branch 0"


def test_depth(open_page, address):
    page = open_page(f"{address}#node=n100")
    page.wait_for_selector("#way ol button")
    way = [text.split()[0] for text in page.locator("#way ol button").all_inner_texts()]
    assert (way[0], way[-1]) == ("n100", "n0")
    assert len(way) == 5
    assert page.locator("#histogram .own").count() == 1
    page.locator("#way ol button").last.click()
    page.locator("#node h2", has_text="n0").wait_for()


def test_pictures_are_saved(open_page, address):
    page = open_page(f"{address}#node=n7")
    with page.expect_download() as saved:
        page.click("#save-png")
    assert saved.value.path().read_bytes().startswith(b"\x89PNG")
    with page.expect_download() as saved:
        page.click("#save-svg")
    svg = saved.value.path().read_text()
    assert svg.count("<circle") == 121 + 1
    assert "A" in re.search(r'<path d="([^"]+)"', svg)[1]
    assert ">n7</text>" in svg


def test_light_and_dark(open_page, address):
    page = open_page(address, color_scheme="dark")
    assert picture(page)[2, 2].max() < 60
    page.click("#theme")
    settle(page)
    assert picture(page)[2, 2].min() > 200
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert picture(page)[2, 2].min() > 200


WITHOUT_WEBGL = """
const real = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
  return kind === "webgl2" ? null : real.call(this, kind, ...rest);
};
"""


def test_without_webgl_the_points_are_drawn_all_the_same(open_page, spots):
    page = open_page(spots, script=WITHOUT_WEBGL)
    assert page.get_attribute("html", "data-renderer") == "canvas, without WebGL"
    for colour, point in SPOTS.items():
        near(spot(page, colour), to_screen(page, point))


def test_many_points_are_all_there_when_the_hand_rests(open_page, serve):
    angles = np.linspace(0, 2 * np.pi, 60_000, endpoint=False)
    radii = np.tanh(np.tile([1.0, 2.0, 3.0], 20_000) / 2)
    points = np.column_stack([radii * np.cos(angles), radii * np.sin(angles)])
    page = open_page(serve(make_scene(points, range(60_000), space="poincare")))
    before = picture(page)
    place = to_screen(page, 0.2 + 0.1j)
    box = stage_box(page)
    page.mouse.move(box["x"] + place.real, box["y"] + place.imag)
    page.mouse.down()
    for k in (40, 80, 0):  # back to where it began
        page.mouse.move(box["x"] + place.real + k, box["y"] + place.imag, steps=4)
    page.mouse.up()
    page.mouse.move(box["x"] + 2, box["y"] + 2)
    page.locator("#stage[data-thin='1']").wait_for()
    page.wait_for_timeout(300)
    settle(page)
    assert (np.abs(picture(page) - before).max(2) > 40).mean() < 1e-3


def test_a_crowd_about_the_middle_is_seen_larger(open_page, serve):
    small = {colour: point / 4 for colour, point in SPOTS.items()}
    page = open_page(serve(spots_scene(small)))
    zoom = 0.8 / abs(small["green"])
    near(spot(page, "orange"), to_screen(page, small["orange"], zoom))
    page.click("#zoom-out")
    page.click("#home")
    settle(page)
    near(spot(page, "orange"), to_screen(page, small["orange"], zoom))


@pytest.mark.parametrize("key", ["l", "L", "Shift+L"])
def test_the_lasso_by_keyboard(open_page, spots, key):
    page = open_page(spots)
    page.focus("#stage")
    page.keyboard.press(key)
    assert page.get_attribute("#lasso", "aria-pressed") == "true"


def test_layout_and_projection(open_page, serve):
    layout = np.array([[0.6, 0.1], [-0.2, 0.5], [0.0, -0.3]])
    told = DiskProjection(layout, "poincare", np.array([1.0, 0, 0]), "Kept: neighbors.", "tree")
    page = open_page(serve(spots_scene(SPOTS, edges=[[0, 1], [1, 2]], layout=told)))

    def are_at(points):
        settle(page)
        for colour, point in zip(SPOTS, points, strict=True):
            near(spot(page, colour), to_screen(page, point))

    are_at(layout[:, 0] + 1j * layout[:, 1])
    assert page.inner_text("#note") == "Kept: neighbors."
    assert page.locator("#picture option").all_inner_texts() == ["Layout of the tree", "Projection"]
    page.select_option("#picture", "projection")
    are_at(SPOTS.values())
    assert "All hyperbolic distances are true" in page.inner_text("#note")
    page.wait_for_function("location.hash.includes('picture=projection')")
    again = open_page(page.url)
    near(spot(again, "blue"), to_screen(again, SPOTS["blue"]))
    assert again.input_value("#picture") == "projection"
    page.select_option("#picture", "layout")
    are_at(layout[:, 0] + 1j * layout[:, 1])


def test_without_a_layout_there_is_nothing_to_choose(open_page, spots):
    assert open_page(spots).locator("#pictures").is_hidden()
