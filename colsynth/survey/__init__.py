"""What every single failure of a cluster costs, with a verified schedule for each.

`SurveyCase` says what is asked, `examine` answers it for one failure, `survey` for all of them on
several cores. What is found is kept in a folder, so that a survey that was ended goes on.
"""

from colsynth.survey.bottleneck import Bottleneck
from colsynth.survey.row import Row
from colsynth.survey.run import Survey, survey
from colsynth.survey.survey_case import SurveyCase

__all__ = ["Bottleneck", "Row", "Survey", "SurveyCase", "survey"]
