"""CrossCult-KIBench's cases as documents of a harness and as training cases (section 3.2 and Appendix C.1).

A document is one request, with all that has to be inserted before it. It needs no other document, no file and no state:
a model that can't insert anything answers the request alone, and its row is the paper's base model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

from culture_tasks.benchmarks.crosscult.draw import pairs_of, split_scenarios
from culture_tasks.benchmarks.crosscult.editions import PAPER, Edition, Order
from culture_tasks.benchmarks.crosscult.raw_cases import RawCase, table_of
from culture_tasks.benchmarks.crosscult.vocabulary import LOCALITY_ROLES, SINGLE_ROLES, Role, Setting
from culture_tasks.benchmarks.interface import Doc, Documents
from culture_tasks.benchmarks.training_cases import AnsweredQuestion, InsertionCase, Locality, TrainingCases
from culture_tasks.data.files import Rows
from culture_tasks.data.images import Images
from culture_tasks.data.reading import fingerprint
from culture_tasks.errors import DataError
from culture_tasks.plain_files import replaced
from culture_tasks.settings import Settings

# Columns and options that there were once are part of the fingerprints, so that runs of then and now compare.
_FORMER_COLUMNS: dict[str, Any] = {"generality": None, "cross_language": None, "cross_scenario": None, "locality": []}
_FORMER_OPTIONS: Mapping[str, Any] = {
    "format": 1,
    "options": {"seed": 0, "split_by": "topic", "cross_language": "drawn", "locality_pool": "part"},
}


class Release:
    """All raw cases of an edition, with their split and pairing, as documents."""

    def __init__(self, table: Rows[RawCase], edition: Edition = PAPER) -> None:
        self.table, self.edition = table, edition
        self.cases = dict(table)  # by id, in the order of the table
        self.split = split_scenarios(self.cases.values())
        self.pairs = pairs_of(self.cases, self.split, edition)
        self.data = fingerprint(row.model_dump(exclude={"image"}) | _FORMER_COLUMNS for row in table.rows)
        # two runs compare only where it agrees
        self.draw = fingerprint([{**_FORMER_OPTIONS, "data": self.data, "split": self.split, **self.pairs}])
        self._files: dict[str, str] = {}

    def images(self, ids: Iterable[str], most_pixels: int) -> list[str]:
        """Returns the image files of cases, each checked when it is first asked for.

        Dozens of documents show one image, so embedded images are written out once, under their hash.
        """
        import datasets

        ids = list(ids)
        unchecked = set(ids) - self._files.keys()
        if rows := [row for row, case_id in enumerate(self.table.ids) if case_id in unchecked]:
            part = self.table.part(rows)
            images = Images(part, [case.image for case in part.rows]).column(most_pixels)
            cells = images.cast_column("image", datasets.Image(decode=False))["image"]
            for row, cell in zip(rows, cells, strict=True):
                content = cell["bytes"]
                self._files[self.table.ids[row]] = cell["path"] if content is None else _file_of(content)
        return [self._files[case_id] for case_id in ids]

    def diagnostic(self) -> Iterator[Doc]:
        """Yields each partition's question of each raw case, with nothing inserted (Figure 1b)."""
        for case_id in self.cases:
            for partition in self.edition.codes:
                yield self._document("diagnostic", "diagnostic", case_id, (), partition, inserted=0)

    def single(self, role: Role, *, train: bool = False) -> Iterator[Doc]:
        """Yields one document for each single-insert case of the test, or of the training data."""
        part = "train" if train else "single"
        for pair in self.pairs["single"]:
            if self.split[self.cases[pair["case"]].scenario] == part:
                case_id, target = pair["case"], pair["target"]
                items = {"generality": pair["generality"], "cross_scenario_locality": pair["cross_scenario"]}
                language = pair["cross_language"] if role == "cross_language_locality" else target
                yield self._document(
                    "single", role, case_id, (target,), target, inserted=1, request=items.get(role), language=language
                )

    def sequential(self, role: Role, partition: str) -> Iterator[Doc]:
        """Yields one document for each chain: after all insertions, the item of the step that inserts a partition."""
        order = self.edition.orders[0]
        for pair in self.pairs["sequential"]:
            items = {"generality": pair["generality"], "locality": pair["locality"][order.index(partition)]}
            yield self._document(
                "sequential", role, pair["case"], order, partition, inserted=len(order), request=items.get(role)
            )

    def retention(self, order: Order, partition: str, after: int) -> Iterator[Doc]:
        """Yields one document for each chain: reliability of a partition after some of the insertions (Figure 6)."""
        for pair in self.pairs["sequential"]:
            yield self._document("retention", "reliability", pair["case"], order, partition, inserted=after)

    def _document(
        self,
        setting: Setting,
        role: Role,
        case_id: str,
        order: Order,
        partition: str,
        *,
        inserted: int,
        request: str | None = None,
        language: str | None = None,
    ) -> Doc:
        """Returns the request about a partition, after the first insertions in an order of samples of a case.

        It is about another raw case where ``request`` has its id, and in another language where ``language`` says so.
        The harness's data set has two image columns beside: ``image``, and ``insertion_image``, which all insertions
        are about (a chain has one image: section 3.1), as a mapping with the file at ``path``.
        """
        case, request, language = self.cases[case_id], request or case_id, language or partition
        sample = self.cases[request].sample(self.edition[language])
        chain = f"{case_id}:{'-'.join(order)}" if order else case_id
        return {
            "id": f"{chain}/{role}/{partition}/{inserted}",  # different in each document of a task
            # a single-insert case, a chain or a raw case: the same in all tasks of a setting, in the same order
            "case_id": chain,
            "setting": setting,
            "role": role,
            "scenario": case.scenario,  # of the inserted sample
            "topic": case.topic,
            "partition": partition,  # whose inserted sample it is about; the one that is asked in the diagnostic
            "language": language,  # of the request and its system prompt
            "order": list(order),  # partitions as they are inserted; more than `insertions` where a chain is cut off
            "step": order.index(partition) + 1 if order else 0,  # place of `partition` in `order`, from 1
            "insertions": [
                {"partition": code, **case.sample(self.edition[code])._asdict()} for code in order[:inserted]
            ],
            "wants_plain_answer": role in LOCALITY_ROLES,  # a model that inserts returns its plain answer, too
            "question": sample.question,
            "reference": "" if role in LOCALITY_ROLES else sample.answer,
            "image_id": request,  # the raw case of `image`
            "insertion_image_id": case_id,  # and of `insertion_image`
            "request_scenario": self.cases[request].scenario,
            "data": self.data,
            "draw": self.draw,
        }


def _file_of(content: bytes) -> str:
    import datasets

    file = Path(datasets.config.HF_DATASETS_CACHE) / "culture-tasks-images" / hashlib.sha256(content).hexdigest()
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        with replaced(file) as part:
            part.write_bytes(content)
    return str(file)


def open_release(settings: Settings, edition: Edition = PAPER) -> Release:
    """Returns the release that all tasks of an edition are made of, read once as long as its files stay as they are."""
    stats = [path.stat() for path in table_of(edition).files(settings)]  # a replaced file may have the old time
    return _read(settings, edition, tuple((stat.st_ino, stat.st_ctime_ns, stat.st_size) for stat in stats))


@lru_cache(maxsize=4)
def _read(settings: Settings, edition: Edition, state: object) -> Release:  # noqa: ARG001 - the state of the files
    return Release(table_of(edition).rows(settings), edition)


def load(build: Callable[[Release], Iterable[Doc]], edition: Edition, settings: Settings) -> Documents:
    """Returns the documents of a task with their two image columns, of which ``insertion_image`` is never decoded."""
    import datasets

    release = open_release(settings, edition)
    docs = list(build(release))
    columns = {
        name: release.images((doc[f"{name}_id"] for doc in docs), settings.image_pixels)
        for name in ("image", "insertion_image")
    }
    images = datasets.Dataset.from_dict(columns).cast_column("image", datasets.Image())
    images = images.cast_column("insertion_image", datasets.Image(decode=False))
    return Documents(docs, images, release.table.reading)


def training_cases(settings: Settings, edition: Edition, limit: int | None = None) -> TrainingCases:
    """Returns the single-insert training cases (Table 1: 11,600), with their images checked."""
    release = open_release(settings, edition)
    by_role = [list(release.single(role, train=True)) for role in SINGLE_ROLES]
    cases = list(zip(*by_role, strict=True))  # one document of each role
    if not cases:
        raise DataError(f"{edition.name}: no scenario is for training. Expected some whose 'split' is 'train'.")
    if limit is not None:
        cases = [cases[index * len(cases) // limit] for index in range(min(limit, len(cases)))]
    documents = [document for case in cases for document in case]
    ids = list(dict.fromkeys(document["image_id"] for document in documents))
    files = dict(zip(ids, release.images(ids, settings.image_pixels), strict=True))

    def answered(doc: Doc) -> AnsweredQuestion:
        partition, image_id = edition[doc["language"]], doc["image_id"]
        return AnsweredQuestion(
            Path(files[image_id]), partition.system_prompt, *release.cases[image_id].sample(partition)
        )

    training = []
    for documents_of_case in cases:
        questions = {doc["role"]: answered(doc) for doc in documents_of_case}
        case = InsertionCase(
            scenario=documents_of_case[0]["scenario"],
            inserted=questions["reliability"],
            generality=(questions["generality"],),
            locality=tuple((kind, questions[kind]) for kind in get_args(Locality)),
        )
        training.append(case)
    return TrainingCases(training, release.data, fingerprint(documents))
