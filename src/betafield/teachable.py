"""How an estimator learns: each method replaces its field with a new one."""

from __future__ import annotations

from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from betafield import cautions, methods, teaching
from betafield import trials as trials_of_rows
from betafield._locks import writing
from betafield.learned import Learned
from betafield.methods import AnyField
from betafield.options import Options


class Teachable(Learned):
    """An estimator that learns from trials, all at once, some at a time, or from other models."""

    # Learning. A thread that changes the model holds its lock and replaces its field. So a failure
    # leaves the model unchanged, and meanwhile questions go to the previous field.

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        context: Any = None,
        groups: Any = None,
    ) -> Self:
        """Learn from trials at X, of shape (t, d), with outcomes y, and forget earlier trials.

        Parameters
        ----------
        X : array or dataframe of shape (t, d)
            Where the trials were made.
        y : array of shape (t,)
            The outcome of each trial: two or more classes.
        sample_weight : array of shape (t,), default=None
            A row of weight 2 counts as two identical rows.
        context : array of shape (t, p + 1), (1, p + 1) or (p + 1,), default=None
            How each trial, or all of them, were distorted; see `betafield.contexts`. None means
            no distortion, which is (0, 1).
        groups : array of shape (t,), default=None
            One label per trial. Trials of one group (a chamber, a storm, a session) share an
            effect, so they carry less information than independent trials. Answers refer to the
            average group.

        Examples
        --------
        With two alternatives, half of the unknown answers are guessed correctly:

        >>> from betafield import SmoothBetaClassifier, contexts
        >>> X, y = [[0.1], [0.2], [0.3], [0.4]], [1, 0, 1, 1]
        >>> model = SmoothBetaClassifier(bandwidth=1.0)
        >>> model.fit(X, y).posterior([[0.2]]).mean().round(3).tolist()
        [0.667]
        >>> chance = contexts.guess_lapse(guess=1 / 2)
        >>> model.fit(X, y, context=chance).posterior([[0.2]]).mean().round(3).tolist()
        [0.462]
        """
        with writing(self):
            self._field_ = self._of_labels(
                None, X, y, None, sample_weight=sample_weight, context=context, groups=groups
            )
        cautions.after_learning(self._field_)
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        context: Any = None,
        groups: Any = None,
    ) -> Self:
        """Learn from more trials.

        After `settle`, the result is, bit for bit, that of one `fit` on all trials, whatever
        their order. Until then, length scales and weights that were estimated from up to a tenth
        fewer trials may be used. Windows (a given `bandwidth`, or `method="windows"`) are always
        settled, but keep the bounds of the first data unless `bounds` are given.

        Parameters
        ----------
        X, y, sample_weight, context, groups
            As in `fit`. Trials with and without contexts may be mixed.
        classes : array, default=None
            All classes that may occur, in the first call. None: those of the first y.

        Examples
        --------
        >>> from betafield import SmoothBetaClassifier
        >>> model = SmoothBetaClassifier(bandwidth=0.1, bounds=[(0, 1)])
        >>> for batch in ([0.2, 0.3], [0.25, 0.9]):
        ...     model = model.partial_fit([[x] for x in batch], [1, 0], classes=[0, 1])
        >>> model.posterior([[0.25]]).mean().tolist()
        [0.6]
        """
        with writing(self):
            self._field_ = self._of_labels(
                self._known(),
                X,
                y,
                classes,
                sample_weight=sample_weight,
                context=context,
                groups=groups,
            )
        return self

    def fit_counts(
        self,
        X: Any,
        successes: Any,
        trials: Any,
        context: Any = None,
        groups: Any = None,
        overdispersion: str | None = None,
    ) -> Self:
        """Learn from binomial rows: `successes` out of `trials` at each row of X.

        Rows whose trials share something (insects in one chamber) vary more than binomial counts.
        With `overdispersion="auto"` they are beta-binomial, and the correlation between trials of a
        row is learned; see `overdispersion_`. None treats all trials as independent. `context` and
        `groups` are as in `fit`, with one value per row.

        Examples
        --------
        >>> from betafield import SmoothBetaClassifier
        >>> model = SmoothBetaClassifier(bandwidth=0.5).fit_counts([[0], [1]], [3, 1], [4, 5])
        >>> model.posterior([[0]])
        Beta(alpha=[4.], beta=[2.])
        """
        with writing(self):
            self._field_ = self._of_counts(
                None,
                X,
                successes,
                trials,
                context=context,
                groups=groups,
                overdispersion=overdispersion,
            )
        cautions.after_learning(self._field_)
        return self

    def partial_fit_counts(
        self,
        X: Any,
        successes: Any,
        trials: Any,
        context: Any = None,
        groups: Any = None,
        overdispersion: str | None = None,
    ) -> Self:
        """Learn from more binomial rows; see `partial_fit` and `fit_counts`."""
        with writing(self):
            self._field_ = self._of_counts(
                self._known(),
                X,
                successes,
                trials,
                context=context,
                groups=groups,
                overdispersion=overdispersion,
            )
        return self

    def fit_files(
        self,
        paths: Any,
        *,
        outcome: str | None = None,
        features: Any = None,
        successes: str | None = None,
        trials: str | None = None,
        sample_weight: str | None = None,
        context: Any = None,
        groups: str | None = None,
        overdispersion: str | None = None,
        progress: bool | None = None,
        batch_rows: int = 1 << 17,
        separator: str | None = None,
    ) -> Self:
        r"""Learn from Parquet and CSV files, however large, as one `fit` on all rows would.

        Files are read in batches of rows, so memory depends on the number of distinct places, not
        on the number of rows. They are read once to find the classes (the outcome alone), once to
        find the domain unless `bounds` are given, and once to learn. The order of files and rows
        does not matter. Earlier trials are forgotten. Errors name the line of a text file, or the
        row of a Parquet file. With `missing="drop"`, rows that lack any of the values below are
        left out, with a warning that says how many.

        Parameters
        ----------
        paths : str, path, or list of them
            Files that end in .parquet, .pq, .csv or .tsv (these with a header), folders and globs.
            A file that is named twice is read once.
        outcome : str, default=None
            The column with the outcome of each trial, unless there are `successes` and `trials`.
        features : list of str, default=None
            The columns with the features. None: all other columns, if all of them are numbers or
            named in `categorical_features`.
        successes, trials : str, default=None
            The columns of counts, if a row stands for several trials.
        sample_weight : str, default=None
            The column of weights, together with an outcome.
        context : array, list of str or callable, default=None
            How trials were distorted: one context for all rows; the columns of its Bernstein
            coefficients; or a function that receives a `pyarrow.RecordBatch` with all columns of
            a file and returns the contexts of its rows. See `betafield.contexts`.
        groups : str, default=None
            The column with the group of each trial; see `fit`.
        overdispersion : None or "auto", default=None
            Whether rows of counts may vary more than binomial; see `fit_counts`.
        progress : bool, default=None
            Whether to show progress and the time left. None: on a terminal, if `rich` is
            installed.
        batch_rows : int, default=131072
            Number of rows to read at once.
        separator : str, default=None
            The character that separates the columns of text files. None: a comma in .csv files, a
            tab in .tsv files.

        Examples
        --------
        >>> from betafield import SmoothBetaClassifier
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     for month in ("may", "june"):
        ...         _ = Path(folder, f"{month}.csv").write_text("dose,died\n1,no\n2,yes\n")
        ...     model = SmoothBetaClassifier(bandwidth=0.5).fit_files(folder, outcome="died")
        >>> model.n_trials_, model.classes_.tolist(), model.feature_names_in_.tolist()
        (4, ['no', 'yes'], ['dose'])
        """
        from betafield import files, streaming

        roles = files.roles(
            features,
            outcome=outcome,
            successes=successes,
            trials=trials,
            sample_weight=sample_weight,
            context=context,
            groups=groups,
        )
        is_apart = trials_of_rows.overdispersed(overdispersion, groups is not None)
        options = self._options()
        rows = files.Rows(
            paths,
            roles,
            batch_rows,
            progress,
            options.categorical_features,
            separator,
            options.missing == "drop",
        )
        owner = type(self).__name__
        with writing(self), rows:
            begun = streaming.begun(owner, options, rows)
            self._field_ = streaming.learned(owner, begun, rows, is_apart)
        cautions.after_learning(self._field_)
        return self

    def settle(self) -> Self:
        """Estimate length scales, widths and weights from all trials, if they are out of date.

        If `partial_fit` and questions alternate, estimates from up to a tenth fewer trials are
        reused, and `settled_` is False. After settling, what was learned depends only on the
        trials and the options, bit for bit, whatever the order, batches and merges.

        Examples
        --------
        >>> from betafield import SmoothBetaClassifier
        >>> X = [[i / 100] for i in range(100)]
        >>> model = SmoothBetaClassifier().fit(X, [0, 1] * 50).partial_fit([[0.5]], [1])
        >>> model.settled_, model.settle().settled_
        (False, True)
        """
        check_is_fitted(self)
        with writing(self):
            self._field_ = self._field_.asked_for(self._options()).settled()
        return self

    def merge(self, other: Teachable) -> Self:
        """Add all trials of another fitted model.

        The result is, bit for bit, that of one `fit` on all trials. Windows (a given
        `bandwidth`, or `method="windows"`) must use the same units for this, so give both models
        the same `bounds`.

        Examples
        --------
        >>> from betafield import SmoothBetaClassifier
        >>> a, b = (SmoothBetaClassifier(bandwidth=0.5, bounds=[(0, 1)]) for _ in range(2))
        >>> a = a.fit([[0.1], [0.2]], [0, 1])
        >>> b = b.fit([[0.3], [0.4]], [0, 1])
        >>> int(a.merge(b).n_trials_)
        4
        """
        check_is_fitted(self)
        if not isinstance(other, Teachable):
            raise TypeError(
                f"other: found {type(other).__name__}; a SmoothBetaClassifier is needed"
            )
        check_is_fitted(other)
        theirs = other.field_  # a snapshot, whatever is added to it meanwhile
        with writing(self):
            self._field_ = methods.merged(self._field_.asked_for(self._options()), theirs)
        return self

    # Private.

    def _options(self) -> Options:
        return Options.of(self).checked()

    def _known(self) -> AnyField | None:
        """Return what was learned so far, if anything."""
        return self.__dict__.get("_field_")

    def _of_labels(
        self, known: AnyField | None, X: Any, y: Any, classes: Any, **columns: Any
    ) -> AnyField:
        """Return a field that includes these trials."""
        return teaching.by_labels(self._before(known), X, y, classes, **columns)

    def _of_counts(
        self, known: AnyField | None, X: Any, successes: Any, held: Any, **columns: Any
    ) -> AnyField:
        """Return a field that includes these binomial rows."""
        return teaching.by_counts(self._before(known), X, successes, held, **columns)

    def _before(self, known: AnyField | None) -> teaching.Before:
        return teaching.Before(type(self).__name__, self._options(), known)
