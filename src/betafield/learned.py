"""The learned attributes of an estimator, read from its field."""

from __future__ import annotations

from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from betafield import components, trials, weighed
from betafield.field import Field
from betafield.methods import AnyField
from betafield.posteriors import Beta
from betafield.smooth import SmoothField

Floats = npt.NDArray[np.float64]


class Learned:
    """An estimator with one field, from which all learned attributes are read.

    `_field_` is replaced as a whole, so readers never see half a change.
    """

    _field_: AnyField

    @classmethod
    def of(cls, field: AnyField) -> Self:
        """Return a model with this field and the field's options."""
        model = cls(**field.options._asdict())
        model._field_ = field
        return model

    # What was learned.

    @property
    def field_(self) -> AnyField:
        """The field: an immutable value, with the current options."""
        check_is_fitted(self)
        field, model = self._field_, cast(Any, self)
        # Other options that were changed since then apply when the model next learns.
        return field.asked_for(field.options._replace(n_jobs=model.n_jobs, prior=model.prior))

    def asked(self, X: Any, name: str = "X") -> tuple[AnyField, Floats]:
        """Return the field and the validated points of X, both at the same moment."""
        field = self.field_
        points = trials.more_points(type(self).__name__, X, field.features, name)
        return field, field.placed_points(points, name)

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes, sorted."""
        return np.asarray(np.sort(self._field_.classes))

    @property
    def pos_label_(self) -> Any:
        """The class that counts as success."""
        classes = self._field_.classes.tolist()
        if len(classes) != 2:
            raise AttributeError(
                f"pos_label_: there are {len(classes)} classes; it exists only for two"
            )
        return classes[1]

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return self._field_.features.number

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        """Names of the features, if X had names."""
        names = self._field_.features.names
        if names is None:
            raise AttributeError("feature_names_in_: the trials had no feature names")
        return np.asarray(names)

    @property
    def n_trials_(self) -> int | float:
        """Number of trials seen, t."""
        return self._field_.totals.number()

    @property
    def bandwidth_(self) -> float:
        """The width of windows, in scaled units."""
        return self._windowed("bandwidth_", "length_scales_").width

    @property
    def weights_(self) -> npt.NDArray[Any]:
        """The components in use, the heaviest first."""
        return self.field_.weights

    @property
    def components_(self) -> list[str]:
        """The components in use, in words."""
        return components.in_words(self.field_)

    @property
    def length_scales_(self) -> Floats:
        """How far the influence of a trial reaches along each feature, in its own units."""
        field = self.field_
        ((_, reach),) = field.reaches
        return _by_feature(field, reach, np.inf)

    @property
    def relevance_(self) -> Floats:
        """Inverse length scales as fractions of the domain, scaled to 1 for the highest."""
        field = self.field_
        found = _by_feature(field, field.relevance, 0.0)
        highest = np.nan_to_num(found).max()
        return found if highest == 0.0 else np.asarray(found / highest)

    @property
    def overdispersion_(self) -> float:
        """The correlation between trials of a row; 0 if they count as independent."""
        return self._smooth("overdispersion_", "bandwidth_").correlation

    @property
    def group_deviation_(self) -> float:
        """The standard deviation of group effects, in log-odds; 0 without groups."""
        return self._smooth("group_deviation_", "bandwidth_").group_deviation

    @property
    def rates_(self) -> dict[str, Beta]:
        """The posteriors of the unknown rates of contexts, by name."""
        field = self.field_
        return dict(field.rates) if isinstance(field, SmoothField) else {}

    @property
    def settled_(self) -> bool:
        """Whether everything was learned from all trials seen so far; see `settle`."""
        return self._field_.is_settled

    @property
    def scale_(self) -> Floats:
        """The length of one scaled unit in the feature's own; NaN for categories."""
        field = self._field_
        found = field.units.unit.copy()
        found[list(field.features.categories.columns)] = np.nan
        return found

    @property
    def units_(self) -> dict[str, dict[str, float]]:
        """The units in which the process measures each feature, with their weights."""
        field = self._smooth("units_", "scale_")
        found = weighed.scales(field.smooth[0], field.serving[0][0], field.features)
        return dict(zip(field.features.called, found, strict=True))

    @property
    def bounds_(self) -> Floats:
        """The domain."""
        return self._field_.bounds

    @property
    def windows_(self) -> Any:
        """The sums of the trials, by place."""
        return self._field_.windows

    def _smooth(self, name: str, instead: str) -> SmoothField:
        """Return the field, which must be of a process."""
        field = self.field_
        if not isinstance(field, SmoothField):
            raise AttributeError(f"{name}: windows have a width instead, see {instead}")
        return field

    def _windowed(self, name: str, instead: str) -> Field:
        """Return the field, which must be of windows."""
        field = self.field_
        if not isinstance(field, Field):
            raise AttributeError(
                f"{name}: method={self._field_.options.method!r} has no width of its own; "
                f"see {instead}, or fit with method='windows'"
            )
        return field


def _by_feature(field: AnyField, numbers: Floats, constant: float) -> Floats:
    """Return numbers by feature, with another one for those that are constant; NaN: categories."""
    found = np.where(np.ptp(field.bounds, axis=1) == 0.0, constant, numbers)
    found[list(field.features.categories.columns)] = np.nan
    return found
