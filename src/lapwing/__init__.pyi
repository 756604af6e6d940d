# The public names of the package, each listed once: type checkers and editors read them here, and `__init__.py` builds
# its table of lazy imports from this file.

from lapwing import applications as applications
from lapwing import encoders as encoders
from lapwing import environments as environments
from lapwing import objectives as objectives
from lapwing import plots as plots
from lapwing import training as training
from lapwing.data import audit as audit
from lapwing.data import collect as collect
from lapwing.data.counting import count as count
from lapwing.data.loading import from_arrays as from_arrays
from lapwing.data.loading import from_minari as from_minari
from lapwing.data.loading import from_ogbench as from_ogbench
from lapwing.data.replay import from_flashbax as from_flashbax
from lapwing.data.replay import from_sb3 as from_sb3
from lapwing.data.trajectories import Trajectories as Trajectories
from lapwing.definitions import geometric as geometric
from lapwing.definitions import one_step as one_step
from lapwing.definitions import successor as successor
from lapwing.definitions import truncated as truncated
from lapwing.environments.box import BoxWorld as BoxWorld
from lapwing.environments.grid import GridWorld as GridWorld
from lapwing.environments.layouts import Layout as Layout
from lapwing.environments.layouts import perfect_maze as perfect_maze
from lapwing.environments.layouts import room as room
from lapwing.environments.layouts import rooms as rooms
from lapwing.environments.registry import make_world as make_world
from lapwing.environments.registry import world_names as world_names
from lapwing.errors import LapwingError as LapwingError
from lapwing.errors import LapwingWarning as LapwingWarning
from lapwing.evaluation import check_loss as check_loss
from lapwing.evaluation import counting_score as counting_score
from lapwing.evaluation import score as score
from lapwing.objectives import agdo as agdo
from lapwing.objectives import allo as allo
from lapwing.objectives import gdo as gdo
from lapwing.objectives import ggdo as ggdo
from lapwing.objectives import nested_lora as nested_lora
from lapwing.objectives import neural_ef as neural_ef
from lapwing.objectives import omm as omm
from lapwing.objectives import quadratic_penalty as quadratic_penalty
from lapwing.objectives import spectral_contrastive as spectral_contrastive
from lapwing.objectives import vamp2 as vamp2
from lapwing.operators.operator import Operator as Operator
from lapwing.operators.ritz import rayleigh_ritz as rayleigh_ritz
from lapwing.report.live_progress import show_progress as show_progress
from lapwing.representation import LaplacianRepresentation as LaplacianRepresentation
from lapwing.representation import load as load
from lapwing.solving import operator as operator
from lapwing.solving import solve as solve
from lapwing.training.certifying import certify as certify
from lapwing.training.learner import Learner as Learner
from lapwing.training.learner import learn as learn
from lapwing.training.online import OnlineLearner as OnlineLearner

__version__: str
