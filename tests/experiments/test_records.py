import multiprocessing

from h2hgcn.experiments.runner import Records


def add_many(path, writer):
    for number in range(50):
        Records(path).add({"writer": writer, "number": number, "text": "x" * 3000})


def test_two_processes_at_once_lose_no_line(tmp_path):
    context = multiprocessing.get_context("fork")  # a new process takes seconds to import PyTorch, of no use here
    path = tmp_path / "r.jsonl"
    processes = [context.Process(target=add_many, args=(path, writer)) for writer in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    found = {(record["writer"], record["number"]) for record in Records(path)}
    assert found == {(writer, number) for writer in range(2) for number in range(50)}


def test_a_line_that_was_cut_short_is_not_read_and_spoils_no_other(tmp_path):
    path = tmp_path / "deep" / "r.jsonl"
    records = Records(path)
    assert list(records) == []
    records.add({"seed": 0})
    with path.open("ab") as file:
        file.write(b'{"seed": 1, "met')
    assert list(records) == [{"seed": 0}]
    records.add({"seed": 2})
    assert list(records) == [{"seed": 0}, {"seed": 2}]
