"""For Stable-Baselines3: rewards, observations and features by a representation, and a callback for online learning.

Stable-Baselines3 is not a dependency of this package: importing this module without it is an error that says what to
install.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lapwing.applications.feeding import Feed
from lapwing.applications.rewards import RepresentationFeatures, Reward
from lapwing.applications.wrappers import (
    ENV_REWARD,
    batch_of_one,
    check_parts,
    check_rewards,
    feature_space,
    new_rewards,
    row_encoder,
)
from lapwing.encoders.plain import PlainNetwork, Rearrangement, plain_network
from lapwing.errors import ArgumentError, MissingExtraError
from lapwing.exporting import torch_arrays, torch_module
from lapwing.representation import LaplacianRepresentation
from lapwing.training.online import OnlineLearner

try:
    import torch  # type: ignore[import-not-found,unused-ignore]
    from stable_baselines3.common.callbacks import BaseCallback  # type: ignore[import-not-found,unused-ignore]
    from stable_baselines3.common.torch_layers import (  # type: ignore[import-not-found,unused-ignore]
        BaseFeaturesExtractor,
    )
    from stable_baselines3.common.vec_env import (  # type: ignore[import-not-found,unused-ignore]
        VecEnv,
        VecEnvWrapper,
    )
except ImportError as error:
    raise MissingExtraError(
        "lapwing.applications.sb3 needs Stable-Baselines3, which brings PyTorch: pip install stable-baselines3; "
        "without it, wrap the Gymnasium environment in lapwing.applications.RepresentationWrapper"
    ) from error


class RepresentationVecEnv(VecEnvWrapper):  # type: ignore[misc,unused-ignore]
    """A ``VecEnv`` whose rewards or observations come from a representation.

    The last reward of an episode is that of the step to ``infos[i]["terminal_observation"]``, which is changed as
    observations are. The environment's own reward stays in ``infos[i]["env_reward"]``.

    Args:
        venv: with array or numbered observations.
        reward: such as :class:`PotentialReward`; None keeps the environment's.
        features: what the agent observes instead; None keeps the environment's observations.
        key: which entry of dictionary observations the model takes.
    """

    def __init__(
        self,
        venv: VecEnv,
        reward: Reward | None = None,
        features: RepresentationFeatures | None = None,
        key: str | None = None,
    ) -> None:
        """Wrap the environment."""
        self._reward, self._features = check_parts(reward, features)
        self._rows = row_encoder(venv.observation_space, key)
        space = None if features is None else feature_space(features, venv.observation_space, key)
        super().__init__(venv, observation_space=space)
        self._here: NDArray[Any] = np.empty(0)

    def reset(self) -> Any:
        """Begin an episode everywhere.

        Returns:
            (n, ...) observations.
        """
        observations = self.venv.reset()
        self._here = self._rows(observations)
        return self._observed(observations)

    def step_wait(self) -> tuple[Any, NDArray[Any], NDArray[np.bool_], list[dict[str, Any]]]:
        """The result of a step.

        Returns:
            Observations, rewards, dones and infos.
        """
        observations, rewards, dones, infos = self.venv.step_wait()
        check_rewards(rewards)
        infos = list(infos)  # a tuple where environments run in processes
        before, self._here = self._here, self._rows(observations)
        there = self._here.copy()
        for i in np.flatnonzero(dones):
            there[i] = self._rows(batch_of_one(infos[i]["terminal_observation"]))[0]
            if self._features is not None:
                infos[i] = infos[i] | {"terminal_observation": self._features(there[i : i + 1])[0]}
        if self._reward is not None:
            infos = [{ENV_REWARD: float(own), **info} for own, info in zip(rewards, infos, strict=True)]
            cut_off = np.array([bool(info.get("TimeLimit.truncated", False)) for info in infos])
            rewards = new_rewards(self._reward, before, there, rewards, dones & ~cut_off).astype(rewards.dtype)
        return self._observed(observations), rewards, dones, infos

    def _observed(self, observations: Any) -> Any:
        return observations if self._features is None else self._features(self._here)


class OnlineCallback(BaseCallback):  # type: ignore[misc,unused-ignore]
    """A callback that feeds an online learner with what the agent sees, and updates it now and then.

    Args:
        learner: what learns; each environment is a stream of its own.
        every: steps of all environments together between two updates; 0 for none.
        steps: gradient steps of an update.
        after: states before the first update.
        key: which entry of dictionary observations the learner takes.

    Example:
        >>> agent.learn(100_000, callback=OnlineCallback(lw.OnlineLearner(dim=11)))  # doctest: +SKIP
    """

    def __init__(
        self, learner: OnlineLearner, every: int = 500, steps: int = 16, after: int = 1000, key: str | None = None
    ) -> None:
        """Keep the numbers; the environments are not known yet."""
        super().__init__()
        self.learner = learner
        self._numbers, self._key = (every, steps, after), key
        self._feed = Feed(learner, *self._numbers)

    def _on_training_start(self) -> None:
        count = self.training_env.num_envs
        self._feed = Feed(self.learner, *self._numbers, count)
        self._rows = row_encoder(self.training_env.observation_space, self._key)
        for number, row in enumerate(self._rows(self.model._last_obs)):
            self._feed.see(number, row)

    def _on_step(self) -> bool:
        rows = self._rows(self.locals["new_obs"])
        for number, (row, done, info) in enumerate(zip(rows, self.locals["dones"], self.locals["infos"], strict=True)):
            self._feed.act(number, self.locals["actions"][number])
            self._feed.see(number, self._rows(batch_of_one(info["terminal_observation"]))[0] if done else row)
            if done:
                self._feed.end(number, not info.get("TimeLimit.truncated", False))
                self._feed.see(number, row)
        self._feed.update()
        return True

    def _on_training_end(self) -> None:
        self._feed.hand_over()


class RepresentationExtractor(BaseFeaturesExtractor):  # type: ignore[misc,unused-ignore]
    """The network of a representation as a features extractor; :func:`extractor_options` gives its arguments.

    Args:
        observation_space: of the agent; images may have their channels first, as Stable-Baselines3 turns them.
        network: plain layers.
        trainable: whether the agent trains its weights further.
    """

    def __init__(self, observation_space: Any, network: PlainNetwork, trainable: bool = False) -> None:
        """Build the PyTorch module with the weights of the network."""
        super().__init__(observation_space, features_dim=network.dim)
        shape = tuple(observation_space.shape or ())
        if shape != network.observation_shape:
            if shape != tuple(np.moveaxis(np.empty(network.observation_shape), -1, 0).shape):
                raise ArgumentError(
                    f"the representation takes observations of shape {network.observation_shape}, and this agent has "
                    f"{shape}; learn it from the observations of the agent"
                )
            turned = Rearrangement((0, 2, 3, 1), network.observation_shape)
            network = PlainNetwork(shape, network.dim, (turned, *network.layers))
        self.network = torch_module(network)
        state = torch_arrays(network, np.zeros(network.dim))
        self.network.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in state.items()})
        self.network.requires_grad_(trainable)

    def apply(self, fn: Any) -> Any:
        """Nothing: policies initialise the weights of their extractors by it, and these are learned already.

        Args:
            fn: not called.

        Returns:
            The module.
        """
        return self

    def forward(self, observations: Any) -> Any:
        """Components of a batch.

        Args:
            observations: (n, ...) tensor.

        Returns:
            (n, dim) tensor.
        """
        return self.network(observations)


def extractor_options(model: LaplacianRepresentation, trainable: bool = False) -> dict[str, Any]:
    """``policy_kwargs`` of an agent whose policy and value networks see the components of a representation.

    Args:
        model: learned with a network of kind ``mlp``, ``fourier`` or ``conv``.
        trainable: whether the agent trains the network further; else it stays as it is.

    Returns:
        A dictionary; add other entries such as ``net_arch``.

    Example:
        >>> agent = PPO("MlpPolicy", env, policy_kwargs=extractor_options(model))  # doctest: +SKIP
    """
    options = {"network": plain_network(model.encoder, model.dim), "trainable": trainable}
    # The network scales pixels itself.
    return {
        "features_extractor_class": RepresentationExtractor,
        "features_extractor_kwargs": options,
        "normalize_images": False,
    }
